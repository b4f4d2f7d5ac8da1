"""Tool "get" of server "google_drive", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "google_drive"
TOOL_NAME = "get"
DEFINITION_DIGEST = "sha256:dc0d0690a1a6b68dcc7cfa26076297da027042c7c78d2c961e1ba2928cc15b0c"


class GetInput(TypedDict):
    pass


async def get(arguments: GetInput = {}, /, **named: Any) -> ToolResult:
    """From the underscore"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get", named, GetInput)
