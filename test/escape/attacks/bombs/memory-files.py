# tries: to use all memory of the host by files without a name
# stopped by: the control group of the sandbox limits its memory, including gVisor's own, and such files count
# want: MemoryLimit

hoard = []
while True:
    fd = os.memfd_create("hoard")
    hoard.append(fd)
    for _ in range(16):
        os.write(fd, os.urandom(1 << 16) * 16)
