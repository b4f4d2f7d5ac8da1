# tries: to become root or another user
# stopped by: the capabilities to change users are missing, and no new privileges can be gained
# want: nothing
# on the host: succeeds

for name, arguments in {
    "setuid": (0,), "seteuid": (0,), "setresuid": (0, 0, 0), "setgid": (0,), "setegid": (0,),
    "setgroups": ([0],)}.items():
    attempt(name, lambda: str(in_child(lambda: getattr(os, name)(*arguments) or "became another")))
