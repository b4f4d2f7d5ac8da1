# tries: to carry data out in the names that it asks a name server for
# stopped by: the sandbox has a network stack of its own, with a loopback device of its own and no other; and the image names no name server
# want: nothing

for name in ("example.com", "secret.example.org", "localhost.example.net"):
    attempt(name, lambda: socket.getaddrinfo(name, 80))
def server():
    for line in open("/etc/resolv.conf"):
        if line.startswith("nameserver"):
            return line
attempt("name server", server)
