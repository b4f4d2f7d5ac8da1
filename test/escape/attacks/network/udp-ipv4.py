# tries: to send a UDP datagram to a port of the host's IPv4 loopback
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing
# on the host: succeeds

def ask():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.connect(("127.0.0.1", {{udp4_port}}))
    s.send(b"hello")
    return s.recv(100)
attempt("datagram", ask)
