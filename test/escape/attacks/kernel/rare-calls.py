# tries: to use rare and new system calls, which are likely to have bugs
# stopped by: gVisor has no such system call, or it is refused
# want: nothing

for name, arguments in {
    "lookup_dcookie": (1, 0, 0), "migrate_pages": (1, 8, 0, 0), "memfd_secret": (0,),
    "process_madvise": (-1, 0, 0, 20, 0), "mount_setattr": (-100, b"/", 0, 0, 0), "fsmount": (0, 0, 0),
    "fsconfig": (0, 0, 0, 0, 0), "landlock_create_ruleset": (0, 0, 1)}.items():
    attempt(name, lambda: syscall(name, *arguments))
