# tries: to search the catalog without end
# stopped by: searches from inside have a rate; those above it wait, and the time of the run goes on
# want: Timeout
# timeout: 10s

s = broker()
def search(method, params):
    for i in range(2000):
        answer = ask(s, frame(method, params))
        if answer.get("error"):
            raise PermissionError(answer["error"]["type"])
    return "2000 answers"
attempt("search", lambda: search("catalog/search", {"query": "attacks"}))
attempt("read definitions", lambda: search("catalog/get", {"server_id": "demo", "name": "echo"}))
