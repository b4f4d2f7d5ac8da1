"""Tool "a.b" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "a.b"
DEFINITION_DIGEST = "sha256:0b4f65fad176ec3e8997d1c1c366f9bd390a712442eab323c4a9a020b68cf819"


class AB_2e7336Input(TypedDict):
    pass


async def a_b_2e7336(arguments: AB_2e7336Input = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is a.b"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "a_b_2e7336", named, AB_2e7336Input)
