"""Tool "a-b" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "a-b"
DEFINITION_DIGEST = "sha256:8b5dfc08c4037a30e02a5f11fabfbb44f0ebe24a9f0a901bbfba179a2b7156ec"


class AB_d44362Input(TypedDict):
    pass


async def a_b_d44362(arguments: AB_d44362Input = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is a-b"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "a_b_d44362", named, AB_d44362Input)
