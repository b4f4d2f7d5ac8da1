# tries: to open sockets of every other family that Linux has or had
# stopped by: gVisor has four families only: unix, IPv4, IPv6, netlink, and packet for those who may
# want: nothing

known = {1, 2, 10, 16, 17}
for family in range(0, 64):
    if family in known:
        continue
    for kind in (1, 2, 3, 5):
        attempt(f"family {family} kind {kind}", lambda: str(socket.socket(family, kind, 0)))
