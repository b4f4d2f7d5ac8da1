# tries: to learn from the socket which process and user is at its other end
# stopped by: gVisor makes the credentials of the other end up
# want: nothing

def peer():
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/airlock/broker.sock")
    pid, uid, gid = struct.unpack("iii", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return f"process {pid}, user {uid}" if pid not in (0, os.getpid()) or uid == 0 else None
attempt("peer", peer)
