# tries: to connect to the abstract sockets of well-known services of a host
# stopped by: abstract names belong to the network namespace, and gVisor has separate names
# want: nothing

names = [
    "/containerd-shim/default/shim.sock", "/tmp/.X11-unix/X0", "/tmp/dbus-session", "/run/containerd/s/socket",
    "ISCSIADM_ABSTRACT_NAMESPACE", "/org/kernel/linux/storage/multipathd"]
for name in names:
    def connect():
        s = socket.socket(socket.AF_UNIX)
        s.connect("\0" + name)
        return "connected"
    attempt(name, connect)
