# tries: to read what the neighbour wrote
# stopped by: each sandbox has its own kernel, files, processes, network and names; nothing is shared but read-only
#     files
# want: nothing

for path in ("/workspace/neighbour", "/tmp/neighbour", "/dev/shm/neighbour"):
    for prefix in ("", "/proc/1/root", "/proc/2/root"):
        attempt(prefix + path, lambda: open(prefix + path).read())
