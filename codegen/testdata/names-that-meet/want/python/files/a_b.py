"""Tool "a_b" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "a_b"
DEFINITION_DIGEST = "sha256:691f01b6664ed5ba91a0d52deab85ec3e233a9bf7620e517074b621712881f14"


class ABInput(TypedDict):
    pass


async def a_b(arguments: ABInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is a_b"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "a_b", named, ABInput)
