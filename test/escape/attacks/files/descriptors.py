# tries: to use descriptors that it has inherited
# stopped by: the guest is given three descriptors: two pipes and the null device
# want: nothing

for fd in range(0, 256):
    try:
        target = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        continue
    def use():
        if target == "/dev/null" or target.startswith(("pipe:", "socket:", "host:", "anon_inode:", "/proc/")):
            return None
        return target
    attempt(f"descriptor {fd} is {target}", use)
    attempt(f"descriptor {fd} as a directory", lambda: os.listdir(fd))
    attempt(f"descriptor {fd} upwards", lambda: os.open("..", os.O_RDONLY, dir_fd=fd))
