"""Tool "3d" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "3d"
DEFINITION_DIGEST = "sha256:bc05b4465866e52b11ca8ba94ced4b8217ccfb6c0332cde7447c5ed93264e96f"


class _3d_da0568Input(TypedDict):
    pass


async def _3d_da0568(arguments: _3d_da0568Input = {}, /, **named: Any) -> ToolResult:
    """The tool 3d"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "_3d_da0568", named, _3d_da0568Input)
