# tries: to connect to a TCP port of the host's IPv6 loopback
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing
# on the host: succeeds

attempt("connect", lambda: socket.create_connection(("::1", {{tcp6_port}}), timeout=2).recv(100))
