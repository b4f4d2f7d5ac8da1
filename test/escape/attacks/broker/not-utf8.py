# tries: to confuse the host with bytes that are not text
# stopped by: a message that breaks the protocol ends the run
# want: SandboxError

broker().sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/\xff\xfecall","params":{}}\n')
time.sleep(30)
