# tries: to take back the promise to gain no new privileges
# stopped by: the kernel never takes it back (prctl(2), PR_SET_NO_NEW_PRIVS)
# want: nothing
# on the host: succeeds

attempt("switch off", lambda: call("prctl", 38, 0, 0, 0, 0) or "off")
attempt("it is off", lambda: None if call("prctl", 39, 0, 0, 0, 0) else "off")
