# tries: to write past the limit of its disks on a file system that it mounts in a new namespace
# stopped by: the mounted file system is memory of the sandbox, which is limited as a whole
# want: MemoryLimit or nothing

def fill():
    syscall("unshare", 0x10000000 | 0x00020000)
    os.makedirs("/tmp/m", exist_ok=True)
    call("mount", b"none", b"/tmp/m", b"tmpfs", 0, None)
    with open("/tmp/m/big", "wb") as file:
        import resource
        for _ in range(1000):
            file.write(bytes(1 << 20))
    return "wrote 1000 MB"
attempt("fill", lambda: in_child(fill))
