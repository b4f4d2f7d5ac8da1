# tries: to open packet sockets, which see whole frames of every device
# stopped by: packet sockets need CAP_NET_RAW, which the sandbox has not
# want: nothing
# on the host: succeeds

for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
    attempt(f"packet {kind.name}", lambda: str(socket.socket(socket.AF_PACKET, kind, socket.htons(3))))
