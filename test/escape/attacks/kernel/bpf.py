# tries: to give the kernel programs and maps through bpf
# stopped by: gVisor has no such system call for those without capabilities
# want: nothing
# on the host: succeeds

def new_map():
    attributes = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 8, 1) + bytes(112))  # an array of one
    return f"map {syscall('bpf', 0, ctypes.addressof(attributes), 128)}"
def new_program():
    code = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" "9500000000000000"))  # r0 = 0; exit
    license = ctypes.create_string_buffer(b"GPL")
    attributes = ctypes.create_string_buffer(
        struct.pack("IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(license)) + bytes(104))
    return f"program {syscall('bpf', 5, ctypes.addressof(attributes), 128)}"
attempt("map", new_map)
attempt("program", new_program)
attempt("map as root of a namespace", lambda: in_child(lambda: syscall("unshare", 0x10000000) or new_map()))
