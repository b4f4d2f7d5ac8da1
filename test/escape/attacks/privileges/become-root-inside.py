# tries: to read the host's files as root of a new user namespace
# stopped by: a user namespace gives power over what belongs to it, all of it gVisor's own; the host sees no call of it
# want: nothing

def root():
    uid = os.getuid()
    syscall("unshare", 0x10000000 | 0x00020000)  # user and mount namespaces
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {os.getgid()} 1")):
        try:
            open(f"/proc/self/{file}", "w").write(text)
        except OSError as error:
            print(f"refused: {file}: {error}", flush=True)
    found = []
    for path in (
        "{{world_file}}", "{{root_file}}", "/proc/1/root{{world_file}}", "/etc/shadow", "/dev/mem", "/dev/vda",
        "/dev/sda"):
        try:
            found.append(open(path, "rb").read(100))
        except OSError as error:
            print(f"refused: {path}: {error}", flush=True)
    return found or None
attempt("root of a namespace", lambda: in_child(root))
