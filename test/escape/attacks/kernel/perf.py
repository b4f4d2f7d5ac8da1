# tries: to watch the kernel and other processes by performance counters
# stopped by: gVisor has no such system call
# want: nothing
# on the host: succeeds

for kind, config in ((0, 0), (1, 0), (1, 9), (2, 1)):
    def open_event():
        attributes = ctypes.create_string_buffer(struct.pack("IIQ", kind, 112, config) + bytes(96))
        return f"event {syscall('perf_event_open', ctypes.addressof(attributes), 0, -1, -1, 0)}"
    attempt(f"{kind} {config}", open_event)
