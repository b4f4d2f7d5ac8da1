# tries: to mount file systems, move and open mounts without being root
# stopped by: mounting needs CAP_SYS_ADMIN
# want: nothing

os.makedirs("/tmp/m", exist_ok=True)
for kind in (
    "tmpfs", "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "overlay", "ext4", "9p", "fuse", "debugfs",
    "securityfs", "bpf", "mqueue", "binfmt_misc"):
    attempt(kind, lambda: call("mount", b"none", b"/tmp/m", kind.encode(), 0, None) or "mounted")
attempt("bind", lambda: call("mount", b"/", b"/tmp/m", None, 4096, None) or "mounted")
attempt("remount the root", lambda: call("mount", None, b"/", None, 32, None) or "remounted")
attempt("unmount the client", lambda: call("umount2", b"/workspace/client", 2) or "unmounted")
attempt("pivot_root", lambda: syscall("pivot_root", b"/tmp", b"/tmp/m") or "moved")
attempt("chroot", lambda: os.chroot("/tmp") or "changed")
attempt("open_tree", lambda: syscall("open_tree", -100, b"/", 1))
attempt("fsopen", lambda: syscall("fsopen", b"tmpfs", 0))
attempt("move_mount", lambda: syscall("move_mount", -100, b"/tmp", -100, b"/workspace", 0) or "moved")
