# tries: to use the host's socket in ways it is not made for
# stopped by: the kernel refuses other kinds of connections
# want: nothing

for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    def connect():
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect("/run/airlock/broker.sock")
        return "connected"
    attempt(kind.name, connect)
attempt("open", lambda: os.open("/run/airlock/broker.sock", os.O_RDWR))
