"""Tool "GetInput" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "GetInput"
DEFINITION_DIGEST = "sha256:4e7f90fe3e005edbaf35977db2959d3cf6bad5e09c387cfa015de21e06b22d33"


class GetInputInput(TypedDict):
    pass


async def get_input(arguments: GetInputInput = {}, /, **named: Any) -> ToolResult:
    """The tool GetInput"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get_input", named, GetInputInput)
