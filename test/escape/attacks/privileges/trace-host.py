# tries: to attach to, read, write or take descriptors of processes of the host
# stopped by: no process of the host has a number inside
# want: nothing

buffer = ctypes.create_string_buffer(64)
vector = ctypes.create_string_buffer(struct.pack("PN", ctypes.addressof(buffer), 64))
for pid in ({{pid}}, 2000, 30000):
    attempt(f"ptrace {pid}", lambda: syscall("ptrace", 16, pid, 0, 0) or "attached")
    attempt(f"read {pid}",
        lambda: syscall("process_vm_readv", pid, ctypes.addressof(vector), 1, ctypes.addressof(vector), 1, 0))
    attempt(f"write {pid}",
        lambda: syscall("process_vm_writev", pid, ctypes.addressof(vector), 1, ctypes.addressof(vector), 1, 0))
    attempt(f"pidfd {pid}", lambda: syscall("pidfd_open", pid, 0))
    attempt(f"compare {pid}", lambda: syscall("kcmp", os.getpid(), pid, 1, 0, 0))
