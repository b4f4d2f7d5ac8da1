# tries: to do what only an administrator may: names, clocks, swap, accounting, reboot
# stopped by: the capabilities are missing, and gVisor does none of it to the host
# want: nothing

now = ctypes.create_string_buffer(struct.pack("qq", 0, 0))
attempt("host name", lambda: syscall("sethostname", b"evil", 4) or "set")
attempt("clock_settime", lambda: syscall("clock_settime", 0, ctypes.addressof(now)) or "set")
attempt("settimeofday", lambda: syscall("settimeofday", ctypes.addressof(now), 0) or "set")
attempt("swapon", lambda: syscall("swapon", b"/tmp/swap", 0) or "on")
attempt("acct", lambda: syscall("acct", b"/tmp/acct") or "on")
attempt("reboot", lambda: syscall("reboot", 0xfee1dead, 672274793, 0, 0) or "off")
attempt("vhangup", lambda: syscall("vhangup") or "done")
attempt("quotactl", lambda: syscall("quotactl", 0x800002 << 8, b"/dev/vda", 0, ctypes.addressof(now)) or "done")
