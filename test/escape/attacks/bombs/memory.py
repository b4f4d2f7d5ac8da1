# tries: to use all memory of the host
# stopped by: the control group of the sandbox limits its memory, gVisor's own included
# want: MemoryLimit

hoard = []
while True:
    hoard.append(bytearray(os.urandom(1 << 16)) * 256)
