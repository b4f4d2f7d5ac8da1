# tries: to have the kernel keep watches, timers and queues without end
# stopped by: all of these are gVisor's own and count as memory of the sandbox
# want: nothing or MemoryLimit

def many(what, action, limit=20_000):
    def go():
        for _ in range(limit):
            action()
    attempt(what, go)
fd = libc.inotify_init()
names = iter(range(10**9))
def watch():
    path = f"/tmp/{next(names) % 400}"
    os.makedirs(path, exist_ok=True)
    call("inotify_add_watch", fd, path.encode(), 0xfff)
many("inotify", watch, 2000)
timer = ctypes.c_void_p()
many("timers", lambda: call("timer_create", 0, None, ctypes.byref(timer)))
many("epoll", lambda: call("epoll_create1", 0))
many("eventfd", lambda: call("eventfd", 0, 0))
