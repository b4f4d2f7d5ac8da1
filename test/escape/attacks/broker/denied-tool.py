# tries: to call a tool that is denied, under names that look like its own
# stopped by: the name is compared byte for byte with those of the snapshot
# want: nothing

def call(server, name):
    got = ask(broker(), frame("tools/call", {"server_id": server, "name": name, "arguments": {}}))
    if not got["ok"]:
        raise PermissionError(got["error"]["type"])
    return "called"
for name in (
    "forbidden", "Forbidden", "FORBIDDEN", " forbidden", "forbidden ", "forbidden\0", "./forbidden", "demo/forbidden",
    "forbidden\n", "forbi\u00addden", "\uff46orbidden", "echo\0forbidden"):
    attempt(repr(name), lambda: call("demo", name))
for server in ("Demo", "demo\0", "../demo", "demo/../demo", "", "*"):
    attempt(f"server {server!r}", lambda: call(server, "forbidden"))
