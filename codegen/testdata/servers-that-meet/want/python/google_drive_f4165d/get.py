"""Tool "get" of server "google-drive", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "google-drive"
TOOL_NAME = "get"
DEFINITION_DIGEST = "sha256:3bae131b90ac93e7f421970cb3cf0a3e4899cae985df04c77610aeab0192eddd"


class GetInput(TypedDict):
    pass


async def get(arguments: GetInput = {}, /, **named: Any) -> ToolResult:
    """From the dash"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get", named, GetInput)
