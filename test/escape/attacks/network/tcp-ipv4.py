# tries: to connect to a TCP port of the host's IPv4 loopback
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing
# on the host: succeeds

attempt("connect", lambda: socket.create_connection(("127.0.0.1", {{tcp4_port}}), timeout=2).recv(100))
