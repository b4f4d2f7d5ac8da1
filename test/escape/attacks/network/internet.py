# tries: to reach any address at all, by TCP and by UDP
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing

# Addresses for documentation (RFC 5737, RFC 3849): should they be reached, no host answers.
for address in ("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    attempt(f"tcp {address}", lambda: str(socket.create_connection((address, 443), timeout=2)))
    attempt(f"udp {address}", lambda: str(socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (address, 53))))
