# tries: to carry data out in the names that it asks a name server for
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback; and the image names
#     no name server
# want: nothing

for name in ("example.com", "secret.example.org", "localhost.example.net"):
    attempt(name, lambda: socket.getaddrinfo(name, 80))
def server():
    for line in open("/etc/resolv.conf"):
        if line.startswith("nameserver"):
            return line
attempt("name server", server)
