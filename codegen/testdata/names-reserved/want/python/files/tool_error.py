"""Tool "ToolError" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "ToolError"
DEFINITION_DIGEST = "sha256:3fe5aeec10c0b422961b02e4378c7efc4554608e9597e25ebc33d74800d842e0"


class ToolErrorInput(TypedDict):
    pass


async def tool_error(arguments: ToolErrorInput = {}, /, **named: Any) -> ToolResult:
    """The tool print"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "tool_error", named, ToolErrorInput)
