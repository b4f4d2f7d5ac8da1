# tries: to show the check one method and the broker another, by members that are there twice
# stopped by: a message is decoded once, and the decision is made on the decoded value
# want: nothing or SandboxError

def call(names):
    params = '{"server_id":"demo",' + names + ',"arguments":{}}'
    message = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + '}\n'
    got = ask(broker(), message.encode())
    if not got["ok"]:
        raise PermissionError(got["error"]["type"])
attempt("name twice", lambda: call('"name":"echo","name":"forbidden"'))
attempt("name in capitals", lambda: call('"name":"echo","NAME":"forbidden"'))
attempt("name in capitals first", lambda: call('"NAME":"echo","name":"forbidden"'))
