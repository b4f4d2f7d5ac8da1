# tries: to stop the kernel in the middle of a copy by userfaultfd
# stopped by: gVisor has no such system call
# want: nothing
# on the host: succeeds

for flags in (0, 1, 0o2000000):
    attempt(f"flags {flags}", lambda: f"descriptor {syscall('userfaultfd', flags)}")
attempt("device", lambda: os.open("/dev/userfaultfd", os.O_RDWR))
