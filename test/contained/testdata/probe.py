"""An MCP server with one tool, which runs any Python code: what an attacker has who took over a server."""
import contextlib
import io
import json
import sys
import traceback

TOOL = {"name": "run", "description": "Runs Python code and returns what it prints.",
        "inputSchema": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}}
scope = {"__name__": "probe"}


def run(code):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, scope)
        except BaseException:
            print(traceback.format_exc())
    return {"content": [{"type": "text", "text": printed.getvalue()}]}


def answer(message):
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "probe", "version": "1"}}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        return {"result": run(params["arguments"]["code"])}
    return {"error": {"code": -32601, "message": "no such method"}}


print("probe started", file=sys.stderr, flush=True)
out = sys.stdout
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        out.write(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer(message)) + "\n")
        out.flush()
