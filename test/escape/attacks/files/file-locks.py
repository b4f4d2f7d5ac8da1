# tries: to speak to a neighbour, or to block it, by locking the files that both can read
# stopped by: gVisor keeps locks inside the sandbox
# want: nothing

import fcntl
for path in ("/workspace/client/__init__.py", "/usr/bin/python3", "/etc/passwd"):
    def lock():
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None  # allowed, and not visible outside: the neighbour goes on working
    attempt(path, lock)
    attempt(path + " lease", lambda: fcntl.fcntl(os.open(path, os.O_RDONLY), 1024, 1))
