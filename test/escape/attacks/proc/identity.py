# tries: to learn which host it is on: boot ID, machine ID, host name, kernel, hardware addresses
# stopped by: gVisor makes these files and answers up; the image has none of the host's
# want: nothing
# on the host: succeeds

for path in (
    "/proc/sys/kernel/random/boot_id", "/etc/machine-id", "/proc/version", "/proc/sys/kernel/osrelease",
    "/proc/cmdline", "/etc/hostname", "/sys/class/net/eth0/address", "/proc/net/arp"):
    def read():
        print(path, "says", open(path).read().strip())  # the oracle knows the host's
    attempt(path, read)
print(os.uname(), socket.gethostname())
