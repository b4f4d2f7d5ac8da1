# tries: to use all memory of the host by files without a name
# stopped by: the control group of the sandbox limits its memory, gVisor's own included; what is in such files counts
# want: MemoryLimit

hoard = []
while True:
    fd = os.memfd_create("hoard")
    hoard.append(fd)
    for _ in range(16):
        os.write(fd, os.urandom(1 << 16) * 16)
