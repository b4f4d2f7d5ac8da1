# tries: to break the host's digest with numbers that no machine can hold
# stopped by: a result without a canonical form is refused
# want: ResultNotSerializable or SandboxError

broker().sendall(
    b'{"jsonrpc":"2.0","id":1,"method":"run/finish","params":{"ok":true,"has_result":true,"data":[1e999999]}}\n')
time.sleep(30)
