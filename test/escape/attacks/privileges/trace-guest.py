# tries: to attach a debugger to the guest's first process from another one
# stopped by: a process may trace only those that it has started
# want: nothing

guest = os.getpid()
def trace():
    PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
    for request in (PTRACE_ATTACH, PTRACE_SEIZE):
        try:
            syscall("ptrace", request, guest, 0, 0)
            return f"attached by {request:#x}"
        except OSError as error:
            last = error
    raise last
attempt("ptrace", lambda: in_child(trace))
