# tries: to read the kernel's memory, symbols and messages
# stopped by: gVisor has no such files, or keeps them empty
# want: nothing
# on the host: succeeds

for path in (
    "/proc/kcore", "/proc/kallsyms", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/kmsg", "/proc/iomem",
    "/proc/slabinfo", "/proc/vmallocinfo", "/proc/modules", "/proc/timer_list", "/proc/keys"):
    attempt(path, lambda: os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 64) or None)
