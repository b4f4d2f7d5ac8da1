# tries: to make more calls than a run may
# stopped by: the broker counts the calls of a run
# want: nothing
# timeout: 60s

s = broker()
def call_many():
    for i in range(1500):
        answer = ask(s, frame("tools/call", {"server_id": "demo", "name": "echo", "arguments": {"n": i}}))
        if not answer["ok"]:
            raise PermissionError(answer["error"]["type"])
    return "1500 calls"
attempt("call", call_many)
