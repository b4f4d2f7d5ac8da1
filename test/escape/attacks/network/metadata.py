# tries: to fetch credentials from the metadata services of clouds
# stopped by: the sandbox has a separate network stack whose only device is a separate loopback
# want: nothing

for address in (
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "metadata.google.internal"):
    for port in (80, 8080):
        attempt(f"{address} {port}", lambda: str(socket.create_connection((address, port), timeout=2)))
