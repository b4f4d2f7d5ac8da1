"""Tool "Get" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "Get"
DEFINITION_DIGEST = "sha256:cd8a4818babfb0dc834a63094048498b9988fa11264f55daa8c0e4657fa41ac7"


class Get_5fb9c3Input(TypedDict):
    pass


async def get_5fb9c3(arguments: Get_5fb9c3Input = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is Get"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get_5fb9c3", named, Get_5fb9c3Input)
