# tries: to use all memory of the host with many processes that each use a little
# stopped by: the control group of the sandbox limits its memory, gVisor's own included, all processes together
# want: MemoryLimit or ProcessLimit

for _ in range(30):
    if os.fork() == 0:
        hoard = bytearray(os.urandom(1 << 16)) * 640  # 40 MB
        for at in range(0, len(hoard), 4096):
            hoard[at] = 1
        time.sleep(60)
time.sleep(60)
