# tries: to fill the disks of the host
# stopped by: the writable places are memory of the sandbox, each with a size
# want: nothing

def fill(directory):
    total = 0
    with open(directory + "/big", "wb", buffering=0) as file:
        while total < 64 << 20:
            total += file.write(bytes(1 << 20))
    return f"{total >> 20} MB in {directory}"
for directory in ("/tmp", "/workspace", "/dev/shm"):
    attempt(directory, lambda: fill(directory))
    try:
        os.remove(directory + "/big")
    except OSError:
        pass
