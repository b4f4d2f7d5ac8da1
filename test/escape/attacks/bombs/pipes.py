# tries: to keep data in pipes and sockets without end, which are charged to no process
# stopped by: the number of open files is limited per process, and what is in pipes counts as memory of the sandbox
# want: nothing or MemoryLimit

hoard = []
def fill():
    while len(hoard) < 2000:
        for a, b in (os.pipe(), [s.detach() for s in socket.socketpair()]):
            hoard.extend((a, b))
            os.set_blocking(b, False)
            try:
                while os.write(b, bytes(1 << 16)):
                    pass
            except BlockingIOError:
                pass
    return "filled"
attempt("fill", fill)
