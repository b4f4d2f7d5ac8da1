# tries: to keep data in the pipes of many processes
# stopped by: the number of processes is limited, and what is in pipes counts as memory of the sandbox
# want: MemoryLimit or ProcessLimit

for _ in range(40):
    if os.fork() == 0:
        try:
            while True:
                _, write = os.pipe()
                os.set_blocking(write, False)
                try:
                    while os.write(write, os.urandom(1 << 16)):
                        pass
                except BlockingIOError:
                    pass
        except OSError:
            time.sleep(60)
time.sleep(60)
