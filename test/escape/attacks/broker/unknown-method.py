# tries: to call methods that the host may have forgotten to forbid
# stopped by: an unknown method ends the run
# want: SandboxError

for method in ("run/list", "rpc.discover", "tools/list", "initialize", "run/cancel"):
    ask(broker(), frame(method, {}))
result = ["an unknown method was answered"]
