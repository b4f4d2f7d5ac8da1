"""Tool "draw" of server "icons", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "icons"
TOOL_NAME = "draw"
DEFINITION_DIGEST = "sha256:5eca4a866e18736a0765537b6ff106734eb54d85d2cd2fe2eb400c9a734610f9"


class DrawInput(TypedDict):
    x: NotRequired[float]


async def draw(arguments: DrawInput = {}, /, **named: Any) -> ToolResult:
    """Draw it.

    Draw

    The server says: only adds, repeating changes nothing more.
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "draw", named, DrawInput)
