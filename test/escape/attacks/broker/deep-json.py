# tries: to overflow the host's stack with JSON of many levels
# stopped by: a message that breaks the protocol ends the run; the parser limits its depth
# want: SandboxError

broker().sendall(
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 500_000 + b"1" + b"}" * 500_000 + b"}\n")
time.sleep(30)
