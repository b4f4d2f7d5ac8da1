# tries: to speak to everyone on the local network by broadcast and multicast
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing

def send(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    return s.sendto(b"x", address)
attempt("broadcast", lambda: send(socket.AF_INET, ("255.255.255.255", 9)))
attempt("multicast", lambda: send(socket.AF_INET, ("224.0.0.251", 5353)))
attempt("multicast IPv6", lambda: send(socket.AF_INET6, ("ff02::fb", 5353)))
