"""Tool "_" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "_"
DEFINITION_DIGEST = "sha256:1cd460910d73084c8127a5dec576c240f07a869547831696db030148347e8a6b"


class _Input(TypedDict):
    pass


async def _(arguments: _Input = {}, /, **named: Any) -> ToolResult:
    """The tool _"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "_", named, _Input)
