# tries: to open raw sockets, which see and forge packets of every protocol
# stopped by: raw sockets need CAP_NET_RAW, which the sandbox has not
# want: nothing
# on the host: succeeds

for family in (socket.AF_INET, socket.AF_INET6):
    for protocol in (1, 6, 17, 58, 255):
        attempt(f"raw {family.name} {protocol}", lambda: str(socket.socket(family, socket.SOCK_RAW, protocol)))
