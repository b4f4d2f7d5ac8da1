# tries: to find the neighbour's code in its own memory, which may be restored from one saved sandbox
# stopped by: a sandbox is saved before it has seen any code
# want: nothing

import re
pattern = re.compile(b"flag [0-9a-f]{16}")
def look():
    found = set()
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    for line in open("/proc/self/maps"):
        low, high = (int(word, 16) for word in line.split()[0].split("-"))
        if "r" not in line.split()[1] or "[v" in line or high - low > 64 << 20:
            continue
        try:
            found.update(pattern.findall(os.pread(memory, high - low, low)))
        except OSError:
            continue
    return sorted(found) or None
attempt("own memory", look)
