# tries: to take the processor from others by real-time scheduling
# stopped by: raising priorities needs CAP_SYS_NICE; the control group limits the processor time of the sandbox as a
#     whole
# want: nothing
# on the host: succeeds

attempt("fifo", lambda: in_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) or "real-time"))
attempt("round robin",
    lambda: in_child(lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)) or "real-time"))
attempt("disk priority", lambda: in_child(lambda: syscall("ioprio_set", 1, 0, 1 << 13) or "real-time"))
