# tries: to give orders to a container daemon through its unix socket
# stopped by: of the host's directories only the image, the wrappers and the run's own socket directory are there
# want: nothing
# on the host: succeeds

paths = [
    "{{socket_file}}", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
    "/run/podman/podman.sock", "/run/crio/crio.sock",
         "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/user/0/bus", "/run/snapd.socket"]
for path in paths:
    for prefix in ("", "/proc/1/root", "/run/airlock/../.."):
        def connect():
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(1)
            s.connect(prefix + path)
            return s.recv(100)
        attempt(prefix + path, connect)
