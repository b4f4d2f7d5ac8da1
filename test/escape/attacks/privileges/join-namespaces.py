# tries: to join the namespaces of other processes
# stopped by: every process that it can name is in its own namespaces already
# want: nothing

for pid in ("1", "{{pid}}"):
    for kind in ("mnt", "net", "pid", "user", "uts", "ipc"):
        def join():
            mine, theirs = os.readlink(f"/proc/self/ns/{kind}"), os.readlink(f"/proc/{pid}/ns/{kind}")
            if mine == theirs:
                return None
            return syscall("setns", os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), 0) or "joined"
        attempt(f"{kind} of {pid}", join)
