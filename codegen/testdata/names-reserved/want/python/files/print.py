"""Tool "print" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "print"
DEFINITION_DIGEST = "sha256:bd8c563024c7bd2a887ba3af50d191962ff09b39f1ea05e1b0d95ed5725f07e5"


class PrintInput(TypedDict):
    pass


async def print(arguments: PrintInput = {}, /, **named: Any) -> ToolResult:
    """The tool print"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "print", named, PrintInput)
