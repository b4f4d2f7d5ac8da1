# tries: to change devices and the kernel through /sys: helpers, power, debugging
# stopped by: /sys is read-only and gVisor's own
# want: nothing

paths = [
    "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/ksm/run", "/sys/kernel/debug/tracing/tracing_on",
    "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs"]
for directory, _, names in os.walk("/sys"):
    paths += [os.path.join(directory, name) for name in names]
for path in paths:
    def write():
        return os.write(os.open(path, os.O_WRONLY), b"1\n")
    attempt(path, write)
