# tries: to change settings of the kernel: every file below /proc/sys, and others that are known to hurt
# stopped by: /proc/sys is read-only and gVisor's own
# want: nothing

paths = [
    "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/binfmt_misc/register", "/proc/mtrr", "/proc/bus/pci"]
for directory, _, names in os.walk("/proc/sys"):
    paths += [os.path.join(directory, name) for name in names]
for path in paths:
    def write():
        fd = os.open(path, os.O_WRONLY)
        return os.write(fd, b"1\n")
    if "/net/ipv4/" in path:
        continue  # those of the sandbox's own network stack may be writable: see own-sysctls
    attempt(path, write)
