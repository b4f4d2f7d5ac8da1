# tries: to read the host's files through the root and working directories of other processes
# stopped by: the processes in /proc are those of the sandbox; their root is the sandbox's
# want: nothing
# on the host: succeeds

for pid in [name for name in os.listdir("/proc") if name.isdigit()] + ["self", "thread-self"]:
    for link in ("root", "cwd"):
        attempt(f"{pid}/{link}", lambda: open(f"/proc/{pid}/{link}{{world_file}}").read())
