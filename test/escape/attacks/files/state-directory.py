# tries: to look at Airlock's own directories on the host: state, audit log, keys, other sandboxes
# stopped by: of the host's directories only the image, the wrappers and the run's own socket directory are there
# want: nothing
# on the host: succeeds

for path in (
    "{{state_dir}}", "{{state_dir}}/s", "{{state_dir}}/audit", "{{state_dir}}/keys", "/var/lib/airlock",
    "/run/airlock/..", "/run/airlock"):
    def look():
        names = os.listdir(path)
        return None if names in ([], ["airlock"], ["broker.sock"]) else names
    attempt(path, look)
attempt("state directory", lambda: os.stat("{{state_dir}}"))
