# tries: to read other people's packets with a packet socket as root of a new namespace
# stopped by: the packet socket sees gVisor's own loopback device only
# want: nothing

def capture():
    syscall("unshare", 0x10000000)  # CLONE_NEWUSER, without a network namespace
    return str(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))
attempt("capture", lambda: in_child(capture))
