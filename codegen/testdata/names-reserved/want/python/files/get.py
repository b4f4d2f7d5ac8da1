"""Tool "get" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "get"
DEFINITION_DIGEST = "sha256:4c5c1874f3219c53b67f25d2242ed8b6cf61e919e251b927d3d49742c81e0440"


class Get_2998b3Input(TypedDict):
    pass


async def get(arguments: Get_2998b3Input = {}, /, **named: Any) -> ToolResult:
    """The tool get"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get", named, Get_2998b3Input)
