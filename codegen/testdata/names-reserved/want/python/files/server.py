"""Tool "_Server" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "_Server"
DEFINITION_DIGEST = "sha256:e48f18ba4537bd4ac8dd7bccbc9c2325284067697c48e1b031f5a4e49cacab7a"


class ServerInput(TypedDict):
    pass


async def server(arguments: ServerInput = {}, /, **named: Any) -> ToolResult:
    """The tool _Server"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "server", named, ServerInput)
