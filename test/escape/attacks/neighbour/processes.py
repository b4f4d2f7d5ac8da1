# tries: to find the neighbour's processes, their arguments and environments
# stopped by: each sandbox has its own kernel, files, processes, network and names; nothing is shared but read-only
#     files
# want: nothing

for pid in range(1, 300):
    def look():
        text = open(f"/proc/{pid}/cmdline").read() + open(f"/proc/{pid}/environ").read()
        return text if "read line" in text or "NEIGHBOUR" in text else None
    attempt(f"process {pid}", look)
