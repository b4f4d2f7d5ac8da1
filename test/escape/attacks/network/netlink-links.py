# tries: to see or make network devices through netlink
# stopped by: the network stack of the sandbox has a loopback device only; changes need CAP_NET_ADMIN
# want: nothing
# on the host: succeeds

def devices():
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    return names or None
attempt("devices beside lo", devices)

def new_link(kind):
    """RTM_NEWLINK with IFLA_IFNAME and IFLA_LINKINFO (rtnetlink(7))."""
    def attribute(number, data):
        return struct.pack("HH", 4 + len(data), number) + data + bytes(-len(data) % 4)
    body = bytes(16) + attribute(3, b"bad0\0") + attribute(18, attribute(1, kind))
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack("IHHII", 16 + len(body), 16, 0x605, 1, 0) + body)
    code = -struct.unpack("i", s.recv(4096)[16:20])[0]
    if code:
        raise OSError(code, os.strerror(code))
    return "made " + kind.decode()
if os.getuid():  # not when this runs on the host to show that the above finds devices
    for kind in (b"dummy", b"veth", b"bridge", b"tun", b"ipvlan"):
        attempt(f"new {kind.decode()}", lambda: new_link(kind))
