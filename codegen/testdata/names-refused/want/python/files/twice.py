"""Tool "twice" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "twice"
DEFINITION_DIGEST = "sha256:a13f978d1917f5a10b6e798ba50bc734045aceffb0103643b804fdf1372e08c2"


class TwiceInput(TypedDict):
    pass


async def twice(arguments: TwiceInput = {}, /, **named: Any) -> ToolResult:
    """Two"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "twice", named, TwiceInput)
