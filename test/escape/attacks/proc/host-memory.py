# tries: to learn how much memory and which disks the host has, and how full they are
# stopped by: the numbers that gVisor gives out are those of the sandbox's own limits
# want: nothing
# known hole on containerd: /: 'N MB, N files'

def megabytes():
    total = int(open("/proc/meminfo").read().split()[1]) // 1024
    return f"{total} MB of memory" if total > 320 else None
attempt("memory", megabytes)
for path in ("/", "/workspace", "/tmp", "/dev/shm"):
    def size():
        s = os.statvfs(path)
        total = s.f_blocks * s.f_frsize >> 20
        return f"{total} MB, {s.f_files} files" if total > 320 or s.f_files > 100_000 else None
    attempt(path, size)
