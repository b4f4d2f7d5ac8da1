# tries: to use all memory of the host by System V shared memory, semaphores and messages
# stopped by: all of these are gVisor's own and count as memory of the sandbox
# want: MemoryLimit or nothing

libc.shmat.restype = ctypes.c_void_p
def segment():
    for _ in range(200):
        number = call("shmget", 0, 16 << 20, 0o1600)
        at = libc.shmat(number, None, 0)
        ctypes.memset(at, 1, 16 << 20)
    return "3 GB"
attempt("shared memory", segment)
attempt("semaphores", lambda: [call("semget", 0, 200, 0o1600) for _ in range(100)] and None)
