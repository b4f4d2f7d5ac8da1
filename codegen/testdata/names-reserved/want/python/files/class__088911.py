"""Tool "class" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "class"
DEFINITION_DIGEST = "sha256:c9f96270747adf2a6811c72ad835eb515b591a91a8f0e45d7654950da1c3b138"


class Class_088911Input(TypedDict):
    pass


async def class__088911(arguments: Class_088911Input = {}, /, **named: Any) -> ToolResult:
    """The tool class"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "class__088911", named, Class_088911Input)
