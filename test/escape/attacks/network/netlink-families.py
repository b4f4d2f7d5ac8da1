# tries: to open the netlink families that talk to parts of the kernel
# stopped by: gVisor has the families for routes and device events only, and the latter are silent
# want: nothing
# on the host: succeeds

families = {
    "xfrm": 6, "selinux": 7, "iscsi": 8, "audit": 9, "fib": 10, "connector": 11, "netfilter": 12, "scsi": 18,
    "crypto": 21}
for name, number in families.items():
    attempt(name, lambda: str(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, number)))
