# tries: to reach the hypervisor and the host of a virtual machine over vsock
# stopped by: gVisor has no such family of sockets
# want: nothing

for cid in (0, 1, 2, 3):
    for port in (22, 1024, 2375, 52000):
        def connect():
            s = socket.socket(40, socket.SOCK_STREAM)  # AF_VSOCK
            s.settimeout(1)
            s.connect((cid, port))
            return f"connected to {cid}:{port}"
        attempt(f"vsock {cid}:{port}", connect)
