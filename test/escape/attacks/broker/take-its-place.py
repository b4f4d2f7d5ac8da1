# tries: to take the place of the host's socket
# stopped by: the socket's directory is mounted read-only
# want: nothing

path = "/run/airlock/broker.sock"
attempt("remove", lambda: os.remove(path) or "removed")
attempt("rename", lambda: os.rename(path, "/tmp/s") or "renamed")
attempt("replace", lambda: os.replace("/tmp", path) or "replaced")
attempt("bind", lambda: socket.socket(socket.AF_UNIX).bind(path) or "bound")
attempt("bind beside", lambda: socket.socket(socket.AF_UNIX).bind("/run/airlock/other.sock") or "bound")
attempt("chmod", lambda: os.chmod(path, 0) or "changed")
