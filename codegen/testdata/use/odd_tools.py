"""Tools with the names of keywords, built-ins and our own code can all be called."""

import ast
import asyncio
import contextlib
import io

import servers.files as files

printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    for name in files.__all__:
        asyncio.run(getattr(files, name)({}))
called = [ast.literal_eval(line)[1] for line in printed.getvalue().splitlines()]
assert len(set(called)) == 24 == len(called), called

for alias, tool in (("SERVER_ID", "SERVER_ID"), ("_invoke", "_invoke"), ("TYPE_CHECKING", "TYPE_CHECKING"), ("_Server", "_Server"), ("GetInput", "GetInput"), ("ToolError", "ToolError"), ("attach", "attach")):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        asyncio.run(getattr(files, alias)({}))
    assert ast.literal_eval(printed.getvalue())[1] == tool, alias
assert isinstance(files.__path__, list), "a tool named __path__ does not break the package"
