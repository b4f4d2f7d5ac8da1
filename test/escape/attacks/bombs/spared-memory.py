# tries: to be spared by the memory killer while it uses all memory
# stopped by: what it says of itself is gVisor's business; the host ends the control group that is over its limit
# want: MemoryLimit

open("/proc/self/oom_score_adj", "w").write("-1000")
hoard = []
while True:
    hoard.append(bytearray(os.urandom(1 << 16)) * 256)
