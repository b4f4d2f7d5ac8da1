# tries: to fill the disks of the host
# stopped by: the writable places are memory of the sandbox, each with a size
# want: nothing

def fill(folder):
    total = 0
    with open(folder + "/big", "wb", buffering=0) as file:
        while total < 64 << 20:
            total += file.write(bytes(1 << 20))
    return f"{total >> 20} MB in {folder}"
for folder in ("/tmp", "/workspace", "/dev/shm"):
    attempt(folder, lambda: fill(folder))
    try:
        os.remove(folder + "/big")
    except OSError:
        pass
