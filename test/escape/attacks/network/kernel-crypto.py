# tries: to use the kernel's crypto interface (AF_ALG), whose bugs have given root before
# stopped by: gVisor has no such family of sockets
# want: nothing

def bind():
    s = socket.socket(38, socket.SOCK_SEQPACKET, 0)
    s.bind(("hash", "sha256"))
    return "bound"
attempt("AF_ALG", bind)
