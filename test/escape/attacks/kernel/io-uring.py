# tries: to use io_uring, which many exploits have started from
# stopped by: gVisor keeps it switched off
# want: nothing
# on the host: succeeds

def setup():
    parameters = ctypes.create_string_buffer(120)
    return f"ring {syscall('io_uring_setup', 8, ctypes.addressof(parameters))}"
attempt("io_uring", setup)
