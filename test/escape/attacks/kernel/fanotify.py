# tries: to watch every file access of the host by fanotify
# stopped by: gVisor has no such system call
# want: nothing
# on the host: succeeds

for flags in (0, 4, 8, 0x200):
    attempt(f"flags {flags:#x}", lambda: f"group {syscall('fanotify_init', flags, 0)}")
