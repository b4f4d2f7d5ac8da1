"""Tool "SERVER_ID" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "SERVER_ID"
DEFINITION_DIGEST = "sha256:a445c7869a7e444b37bc286c168719f3a2753439fff83cf20bf983761aa32a49"


class ServerIdInput(TypedDict):
    pass


async def server_id(arguments: ServerIdInput = {}, /, **named: Any) -> ToolResult:
    """The tool SERVER_ID"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "server_id", named, ServerIdInput)
