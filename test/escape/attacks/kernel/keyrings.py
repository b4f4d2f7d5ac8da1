# tries: to read or keep secrets in the kernel's keyrings, which outlive a process
# stopped by: gVisor's keyrings hold no keys
# want: nothing
# on the host: succeeds

attempt("add", lambda: f"key {syscall('add_key', b'user', b'evil', b'secret', 6, -2)}")
for ring in (-1, -2, -3, -4, -5):
    def read():
        buffer = ctypes.create_string_buffer(256)
        n = syscall("keyctl", 11, ring, ctypes.addressof(buffer), 256)
        return buffer.raw[:n] or None
    attempt(f"read keyring {ring}", read)
attempt("request", lambda: f"key {syscall('request_key', b'user', b'evil', None, -2)}")
