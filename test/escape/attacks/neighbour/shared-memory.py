# tries: to read the neighbour's shared memory, semaphores and queues
# stopped by: each sandbox has its own kernel, files, processes, network and names; nothing is shared but read-only
#     files
# want: nothing

def segments():
    lines = open("/proc/sysvipc/shm").read().splitlines()[1:]
    return lines or None
attempt("segments", segments)
for key in range(1, 200):
    attempt(f"key {key}", lambda: call("shmget", key, 1, 0))
attempt("queues", lambda: os.listdir("/dev/mqueue") or None)
