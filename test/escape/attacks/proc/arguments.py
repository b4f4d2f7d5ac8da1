# tries: to read the arguments of the host's processes, which everyone may read there
# stopped by: the processes in /proc are those of the sandbox: gVisor makes it up, and no process of the host is there
# want: nothing
# on the host: succeeds

attempt("arguments of the bait", lambda: open("/proc/{{pid}}/cmdline").read())
known = ("python3", "/usr/bin/python3")
for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
    def read():
        text = open(f"/proc/{pid}/cmdline").read()
        return text if text and text.split("\0")[0] not in known else None
    attempt(f"arguments of {pid}", read)
