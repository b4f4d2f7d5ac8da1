"""Calls tools of MCP servers through Airlock's broker.

Generated wrappers use `invoke`; code that wants the tool's original name, or
no exceptions, uses `call_tool`.
"""

from sys import _getframe

from client.arguments import call_of, merge, plain_dict
from client.codec import NotSerializable, encode
from client.kept import call
from client.result import ToolError, ToolResult, result_of

__all__ = ["ToolError", "ToolResult", "callTool", "call_tool", "invoke"]


async def call_tool(server_id=None, name=None, arguments=None, **named):
    """Call a tool and return what happened, as a dict.

    `{"ok": True, "data": …, "raw": …}` or `{"ok": False, "error": {"type",
    "message", "retryable", …}, "raw"?: …}`; no failure of the tool raises. `data`
    is described at ToolResult, `raw` is the CallToolResult. One dict in the shape of
    the JavaScript function and of Airlock's MCP tools works too.
    """
    server_id, name, arguments = call_of("call_tool", server_id, name, arguments, named)
    try:
        result = await invoke(server_id, name, arguments)
    except ToolError as failure:
        error = {
            "type": failure.type, "message": failure.message, "retryable": failure.retryable, "source": failure.source}
        if failure.call_id is not None:
            error["call_id"] = failure.call_id
        answer = {"ok": False, "error": error}
        if failure.file is not None:
            error["file"] = failure.file
        if failure.result is not None:
            answer["raw"] = failure.result
        return answer
    return {"ok": True, "data": result.data, "raw": result.raw}


callTool = call_tool


async def invoke(server_id, name, arguments, wrapper=None, named=None, inputs=None):
    """Call a tool; return its ToolResult, or raise ToolError.

    `wrapper` is the name that messages use for the call; `name` by default. `named`
    holds keyword arguments, and `inputs` is the TypedDict of the tool's arguments.
    """
    if named:
        arguments = merge(arguments, named, inputs, wrapper or name)
    elif arguments is None:
        arguments = {}
    elif not isinstance(arguments, dict):
        arguments = plain_dict(arguments, inputs, wrapper or name)
    try:
        params = (
            f'{{"server_id":{encode(server_id, "server_id")},"name":{encode(name, "name")},'
            f'"arguments":{encode(arguments, "arguments")}{_claim()}}}'
        )
    except NotSerializable as problem:
        raise ToolError("ValidationError", str(problem), source="code") from None
    return result_of(await call(params))


def _claim():
    """Say which line of the code makes the call, for a person who may be asked about it."""
    frame = _getframe(1)
    while frame is not None and frame.f_code.co_filename != "<agent_code>":
        frame = frame.f_back
    return "" if frame is None or frame.f_lineno is None else f',"line":{frame.f_lineno}'
