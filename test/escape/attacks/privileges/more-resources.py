# tries: to raise its own limits, before and after it is root of a namespace
# stopped by: raising them needs CAP_SYS_RESOURCE in the first user namespace
# want: nothing
# on the host: succeeds

import resource
kinds = {
    "processes": resource.RLIMIT_NPROC, "open files": resource.RLIMIT_NOFILE, "file size": resource.RLIMIT_FSIZE,
    "core": resource.RLIMIT_CORE, "locked memory": resource.RLIMIT_MEMLOCK}
def up(kind, inside):
    if inside:
        syscall("unshare", 0x10000000)
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        return "has no limit"
    try:
        resource.setrlimit(kind, (hard + 1, hard + 1))
    except ValueError as error:  # what Python makes of EPERM
        raise PermissionError(errno.EPERM, str(error))
    return "raised"
for name, kind in kinds.items():
    attempt(name, lambda: in_child(lambda: up(kind, False)))
    attempt(name + " in a namespace", lambda: in_child(lambda: up(kind, True)))
