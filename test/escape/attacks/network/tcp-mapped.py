# tries: to reach the host's IPv4 loopback through IPv6, with mapped addresses
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing
# on the host: succeeds

for address in ("::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1"):
    attempt(address, lambda: socket.create_connection((address, {{tcp4_port}}), timeout=1).recv(100))
