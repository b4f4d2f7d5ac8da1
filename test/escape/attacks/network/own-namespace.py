# tries: to get a network by making a network namespace in which it is root
# stopped by: the new namespace exists only in gVisor and has only a loopback device; no device of the host can be
#     moved into it
# want: nothing

def look():
    syscall("unshare", 0x10000000 | 0x40000000)  # CLONE_NEWUSER, CLONE_NEWNET
    names = [name for _, name in socket.if_nameindex() if name != "lo"]
    if names:
        return names
    return socket.create_connection(("127.0.0.1", {{tcp4_port}}), timeout=1).recv(100)
attempt("look around in a new namespace", lambda: in_child(look))
