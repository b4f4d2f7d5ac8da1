"""Tool "aB" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "aB"
DEFINITION_DIGEST = "sha256:c8c07e64e51933553c58017831994181fa0ba348a786526fd1b819447feec1a4"


class AB_042ac5Input(TypedDict):
    pass


async def a_b_042ac5(arguments: AB_042ac5Input = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is aB"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "a_b_042ac5", named, AB_042ac5Input)
