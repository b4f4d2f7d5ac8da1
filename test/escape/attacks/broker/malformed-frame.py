# tries: to confuse the host with a frame that is no JSON
# stopped by: a message that breaks the protocol ends the run
# want: SandboxError

broker().sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{\n')
time.sleep(30)
