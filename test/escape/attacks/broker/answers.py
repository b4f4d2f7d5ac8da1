# tries: to send the host answers as if the host had asked
# stopped by: the host sends no requests, so a response breaks the protocol and ends the run
# want: SandboxError

for id in range(1, 5):
    broker().sendall(
        json.dumps({"jsonrpc": "2.0", "id": id, "result": {"ok": True, "approved": True}}).encode() + b"\n")
time.sleep(30)
