# tries: to connect to the neighbour's servers by port and by abstract name
# stopped by: each sandbox has its own kernel, files, processes, network and names; nothing is shared but read-only
#     files
# want: nothing

def ask(family, address):
    s = socket.socket(family)
    s.settimeout(2)
    s.connect(address)
    return s.recv(100)
attempt("port", lambda: ask(socket.AF_INET, ("127.0.0.1", 7777)))
attempt("abstract name", lambda: ask(socket.AF_UNIX, "\0neighbour"))
