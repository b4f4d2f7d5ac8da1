# tries: to read the memory of the host's processes
# stopped by: the processes in /proc are those of the sandbox: gVisor makes it up, and no process of the host is there
# want: nothing
# on the host: succeeds

def read(pid):
    for line in open(f"/proc/{pid}/maps"):
        if "[stack]" in line:
            low, high = (int(word, 16) for word in line.split()[0].split("-"))
            data = os.pread(os.open(f"/proc/{pid}/mem", os.O_RDONLY), high - low, low)
            at = data.find(b"flag ")
            return data[at:at + 21].decode("latin-1") if at >= 0 else None
attempt("stack of the bait", lambda: read({{pid}}))
