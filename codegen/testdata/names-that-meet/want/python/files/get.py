"""Tool "get" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "get"
DEFINITION_DIGEST = "sha256:7565c68def7a1e8cc7edec00ee60e69fdefcd28f93b295373a0dd465f3913fb3"


class GetInput(TypedDict):
    pass


async def get(arguments: GetInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is get"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get", named, GetInput)
