# tries: to send the host answers as if the host had asked
# stopped by: the host asks nothing: an answer is no request and ends the run
# want: SandboxError

for id in range(1, 5):
    broker().sendall(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"ok": True, "approved": True}}).encode() + b"\n")
time.sleep(30)
