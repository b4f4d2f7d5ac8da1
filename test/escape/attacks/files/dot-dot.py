# tries: to climb out of every mount with .. and relative paths
# stopped by: gVisor resolves paths itself and never above the sandbox's root; the file server can open nothing else
# want: nothing
# on the host: succeeds

for start in (
    "/", "/workspace", "/workspace/servers", "/workspace/client", "/run/airlock", "/tmp", "/dev/shm", "/usr/lib", "."):
    attempt(start, lambda: open(start + "/.." * 40 + "{{world_file}}").read())
    def by_descriptor():
        directory = os.open(start, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(40):
            directory = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        return os.read(os.open("{{world_file}}"[1:], os.O_RDONLY, dir_fd=directory), 100)
    attempt(start + " by descriptor", by_descriptor)
