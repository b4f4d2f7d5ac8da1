# tries: to mount the host's disks and file systems as root of new namespaces
# stopped by: a user namespace gives power over what belongs to it, all of it gVisor's own; the host sees no call of
#     it; gVisor has drivers for no disk
# want: nothing

def mount_all():
    syscall("unshare", 0x10000000 | 0x00020000 | 0x20000000)
    os.makedirs("/tmp/m", exist_ok=True)
    found = []
    for source, kind in (("/dev/vda", "ext4"), ("/dev/sda1", "ext4"), ("/dev/root", "xfs"), ("none", "debugfs"),
        ("none", "securityfs"), ("none", "bpf"), ("/", "9p"), ("{{dir}}", "virtiofs"), ("127.0.0.1:/", "nfs")):
        try:
            call("mount", source.encode(), b"/tmp/m", kind.encode(), 0, None)
            found.append(f"{kind}: {os.listdir('/tmp/m')}")
        except OSError as error:
            print(f"refused: {kind}: {error}", flush=True)
    known = {
        "char", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom",
        "zero", "net", "fuse"}
    try:
        call("mount", b"none", b"/tmp/m", b"devtmpfs", 0, None)
        found += sorted(set(os.listdir("/tmp/m")) - known)
    except OSError as error:
        print(f"refused: devtmpfs: {error}", flush=True)
    for flags, target in ((32, b"/"), (32 | 4096, b"/"), (32 | 4096, b"/workspace/client"),
        (32 | 4096, b"/run/airlock")):
        try:
            call("mount", None, target, None, flags, None)
            open(target.decode() + "/evil", "w").write("evil")
            found.append(f"{target} is writable")
        except OSError as error:
            print(f"refused: remount {target}: {error}", flush=True)
    return found or None
attempt("mount", lambda: in_child(mount_all))
