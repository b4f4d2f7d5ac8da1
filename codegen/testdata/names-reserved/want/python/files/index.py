"""Tool "index" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "index"
DEFINITION_DIGEST = "sha256:6f306bae31aee477ee2003208be8fb0f53d6d5542a75beec6e15f6b7ea94d570"


class IndexInput(TypedDict):
    pass


async def index(arguments: IndexInput = {}, /, **named: Any) -> ToolResult:
    """The tool index"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "index", named, IndexInput)
