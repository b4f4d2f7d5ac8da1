# tries: to type into the terminal of the user who started it (TIOCSTI)
# stopped by: the guest has no terminal, only pipes
# want: nothing

import fcntl
for fd in (0, 1, 2):
    attempt(f"descriptor {fd}", lambda: fcntl.ioctl(fd, 0x5412, b"x") or "typed")
attempt("/dev/tty", lambda: fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x") or "typed")
