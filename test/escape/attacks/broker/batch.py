# tries: to send many requests as one batch, past the limit of requests
# stopped by: the protocol has no batches; a message that breaks the protocol ends the run
# want: SandboxError

one = json.loads(frame("catalog/search", {}))
broker().sendall(json.dumps([one] * 1000).encode() + b"\n")
time.sleep(30)
