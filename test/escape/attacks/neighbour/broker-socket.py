# tries: to find the neighbour's socket and speak in its name
# stopped by: each sandbox sees only the directory with its socket
# want: nothing

import glob
for pattern in (
    "/run/airlock/*", "/run/airlock/../*/*.sock", "/run/*/*/broker.sock", "{{state_dir}}/s/*/*/open/run/broker.sock",
    "/proc/*/root/run/airlock/*"):
    def look():
        own = os.stat("/run/airlock/broker.sock")
        others = [path for path in glob.glob(pattern) if not os.path.samestat(os.stat(path), own)]
        return others or None
    attempt(pattern, look)
