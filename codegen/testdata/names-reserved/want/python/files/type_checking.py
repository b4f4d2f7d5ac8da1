"""Tool "TYPE_CHECKING" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "TYPE_CHECKING"
DEFINITION_DIGEST = "sha256:c2ccc98d177cff05b9e035d039f88045a5da817190b88d1ee315fdffb8b006a7"


class TypeCheckingInput(TypedDict):
    pass


async def type_checking(arguments: TypeCheckingInput = {}, /, **named: Any) -> ToolResult:
    """The tool TYPE_CHECKING"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "type_checking", named, TypeCheckingInput)
