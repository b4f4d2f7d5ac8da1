# tries: to make namespaces of every kind without being root
# stopped by: all kinds but user namespaces need CAP_SYS_ADMIN
# want: nothing
# on the host: succeeds

kinds = {
    "mount": 0x00020000, "cgroup": 0x02000000, "uts": 0x04000000, "ipc": 0x08000000, "pid": 0x20000000,
    "net": 0x40000000}
for name, flag in kinds.items():
    attempt(name, lambda: in_child(lambda: syscall("unshare", flag) or "made"))
