# tries: to hold the interpreter's lock for ever in a loop of native code
# stopped by: the host ends the sandbox from outside
# want: Timeout
# timeout: 2s

libc_locked = ctypes.PyDLL(None)
libc_locked.pause()
