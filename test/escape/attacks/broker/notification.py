# tries: to send a request without an id, which has no answer
# stopped by: every request has an id; a message that breaks the protocol ends the run
# want: SandboxError

broker().sendall(
    b'{"jsonrpc":"2.0","method":"tools/call","params":{"server_id":"demo","name":"forbidden","arguments":{}}}\n')
time.sleep(30)
