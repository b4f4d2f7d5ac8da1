# tries: to send a UDP datagram to a port of the host's IPv6 loopback
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing
# on the host: succeeds

def ask():
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.connect(("::1", {{udp6_port}}))
    s.send(b"hello")
    return s.recv(100)
attempt("datagram", ask)
