# tries: to load a module into the kernel, or to start another kernel
# stopped by: gVisor has no such system call
# want: nothing

attempt("init_module", lambda: syscall("init_module", bytes(64), 64, b"") or "loaded")
attempt("finit_module", lambda: syscall("finit_module", os.open("/usr/bin/python3", os.O_RDONLY), b"", 0) or "loaded")
attempt("delete_module", lambda: syscall("delete_module", b"no-such-module", 0) or "removed")
attempt("kexec_load", lambda: syscall("kexec_load", 0, 0, 0, 0) or "loaded")
