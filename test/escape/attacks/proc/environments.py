# tries: to read the environments of the host's processes
# stopped by: the processes in /proc are those of the sandbox: gVisor makes it up, and no process of the host is there
# want: nothing
# on the host: succeeds

for pid in ["{{pid}}"] + [name for name in os.listdir("/proc") if name.isdigit()]:
    def read():
        text = open(f"/proc/{pid}/environ").read()
        return text if "AIRLOCK_BAIT" in text else None
    attempt(f"environment of {pid}", read)
