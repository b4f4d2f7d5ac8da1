# tries: to learn the host's hardware from its firmware and devices
# stopped by: gVisor has no such directories in /sys; the one that it has holds a word of Airlock's
# want: nothing

for path in (
    "/sys/class/dmi/id", "/sys/firmware", "/sys/firmware/dmi/tables", "/sys/bus/pci/devices", "/sys/block",
    "/sys/class/block", "/sys/devices/virtual/dmi", "/sys/hypervisor", "/sys/module", "/sys/kernel/debug",
    "/sys/kernel/security", "/proc/device-tree"):
    def look():
        names = [
            name for name in os.listdir(path)
            if not (path == "/sys/class/dmi/id" and open(f"{path}/{name}").read() == "sandbox\n")]
        return None if names in ([], ["id"]) else names
    attempt(path, look)
