# tries: to make a file that claims to be larger than every disk
# stopped by: the size of files is limited; holes take no space
# want: nothing

def make(size):
    fd = os.open("/tmp/sparse", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, size)
    return f"{size} bytes"
for size in (1 << 30, 1 << 40, 1 << 60, (1 << 63) - 1):
    attempt(f"truncate {size}", lambda: make(size))
    attempt(f"allocate {size}",
        lambda: os.posix_fallocate(os.open("/tmp/sparse", os.O_RDWR | os.O_CREAT), 0, size) or "allocated")
    attempt(f"write at {size}", lambda: os.pwrite(os.open("/tmp/sparse", os.O_RDWR | os.O_CREAT), b"x", size))
