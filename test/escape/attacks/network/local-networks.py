# tries: to reach the gateway, the container bridge and the neighbours in the local network
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing

for address in ("10.0.0.1", "10.0.2.2", "172.17.0.1", "172.16.0.1", "192.168.0.1", "192.168.1.1", "fe80::1"):
    attempt(f"tcp {address}", lambda: str(socket.create_connection((address, 22), timeout=2)))
def routes():
    lines = open("/proc/net/route").read().splitlines()[1:]
    return [line for line in lines if not line.startswith("lo")] or None
attempt("routes", routes)
