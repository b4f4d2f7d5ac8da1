"""Tool "delete" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "delete"
DEFINITION_DIGEST = "sha256:be29af4976b4a25c4f0bc1a2cb57f503aa2dcc0cd29eca116d3f9829af9f8777"


class DeleteInput(TypedDict):
    pass


async def delete(arguments: DeleteInput = {}, /, **named: Any) -> ToolResult:
    """The tool delete"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "delete", named, DeleteInput)
