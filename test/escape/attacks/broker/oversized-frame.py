# tries: to fill the host's memory with one frame without end
# stopped by: a frame has at most 16 MiB; a message that breaks the protocol ends the run
# want: SandboxError

s = broker()
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":"')
while True:
    s.sendall(b"x" * (1 << 20))
