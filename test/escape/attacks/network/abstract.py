# tries: to connect to an abstract unix socket of the host, which needs no file
# stopped by: abstract names belong to the network namespace, and gVisor has separate names
# want: nothing
# on the host: succeeds

for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    def connect():
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect("\0{{abstract_name}}")
        return s.recv(100)
    attempt(f"abstract {kind.name}", connect)
