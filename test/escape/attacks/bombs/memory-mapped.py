# tries: to use all memory of the host by mappings, shared ones among them
# stopped by: the control group of the sandbox limits its memory, gVisor's own included
# want: MemoryLimit

import mmap
hoard = []
for turn in range(200):
    area = mmap.mmap(-1, 16 << 20, mmap.MAP_SHARED if turn % 2 else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, len(area), 4096):
        area[at] = 1
    hoard.append(area)
