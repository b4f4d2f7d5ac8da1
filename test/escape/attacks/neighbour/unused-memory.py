# tries: to find what others left in memory that it is given
# stopped by: the kernel of the host gives zeroes; restored sandboxes share only what was saved before any code came
# want: nothing

import mmap
def look():
    for _ in range(4):
        area = mmap.mmap(-1, 32 << 20)
        if area.find(b"flag ") >= 0 or any(area[at:at + 64] != bytes(64) for at in range(0, len(area), 1 << 16)):
            return "memory is not zero"
        area.close()
attempt("fresh memory", look)
