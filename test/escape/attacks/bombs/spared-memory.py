# tries: to be spared by the memory killer while it uses all memory
# stopped by: the setting only changes gVisor's view; the host ends a control group that is over its limit
# want: MemoryLimit

open("/proc/self/oom_score_adj", "w").write("-1000")
hoard = []
while True:
    hoard.append(bytearray(os.urandom(1 << 16)) * 256)
