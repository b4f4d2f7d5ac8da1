# tries: to have the host run a program when a process dumps core
# stopped by: /proc/sys is read-only and gVisor's own; cores are limited to nothing
# want: nothing

attempt("core_pattern", lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/evil %p"))
def dump():
    import resource
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    except ValueError as error:  # what Python makes of EPERM
        raise PermissionError(errno.EPERM, str(error))
    return "cores allowed"
attempt("core limit", dump)
