# tries: to show the check one method and the broker another, by members that are there twice
# stopped by: a message is decoded once, and the decision is made on the decoded value
# want: nothing or SandboxError

def call(text):
    got = ask(broker(), text.encode() + b"\n")
    if not got["ok"]:
        raise PermissionError(got["error"]["type"])
attempt("name twice",
    lambda: call(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server_id":"demo","name":"echo","name":"forbidden","arguments":{}}}'))
attempt("name in capitals",
    lambda: call(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server_id":"demo","name":"echo","NAME":"forbidden","arguments":{}}}'))
attempt("name in capitals first",
    lambda: call(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"server_id":"demo","NAME":"echo","name":"forbidden","arguments":{}}}'))
