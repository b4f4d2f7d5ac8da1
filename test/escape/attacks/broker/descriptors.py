# tries: to fill the host's table of descriptors by sending it open files
# stopped by: the host reads bytes only; the kernel throws descriptors away that are not taken
# want: nothing or SandboxError

s = broker()
def send():
    for i in range(200):
        socket.send_fds(s, [frame("catalog/search", {}, id=i)], [0, 1, 2] * 20)
attempt("descriptors", send)
