"""Tool "-" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "-"
DEFINITION_DIGEST = "sha256:56dfe6b56ca115d58eb54a0d6fb0d6336685fe54a8df6fbb8c28ccf1af8c2fa8"


class __3973e0Input(TypedDict):
    pass


async def __3973e0(arguments: __3973e0Input = {}, /, **named: Any) -> ToolResult:
    """The tool -"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "__3973e0", named, __3973e0Input)
