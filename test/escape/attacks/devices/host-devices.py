# tries: to open disks, memory, virtual machines and other devices of the host
# stopped by: /dev holds gVisor's own devices only; device files cannot be made
# want: nothing
# known hole: fuse: 'opened' and other devices: ['fuse']

names = [
    "mem", "kmem", "port", "kmsg", "kvm", "vhost-net", "vhost-vsock", "loop-control", "loop0", "sda", "sda1", "vda",
    "vda1", "nvme0n1", "xvda", "dm-0", "mapper/control", "sr0", "fb0", "dri/card0", "nvidia0", "input/event0", "uinput",
    "snapshot", "hpet", "rtc", "watchdog", "autofs", "btrfs-control", "cuse", "userfaultfd", "tpm0", "ttyS0", "console",
    "hwrng", "vfio/vfio", "net/tun", "fuse"]
for name in names:
    attempt(name, lambda: os.open("/dev/" + name, os.O_RDWR | os.O_NONBLOCK) and "opened")
known = {
    "char", "fd", "full", "net", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom",
    "zero"}
attempt("other devices", lambda: sorted(set(os.listdir("/dev")) - known) or None)
