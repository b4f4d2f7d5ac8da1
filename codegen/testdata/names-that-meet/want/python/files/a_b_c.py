"""Tool "a_b_c" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "a_b_c"
DEFINITION_DIGEST = "sha256:b11b3dc91f6e6e39ecaacebd0eb63a62152f6dc4339b47705a665ec96872bd4d"


class ABCInput(TypedDict):
    pass


async def a_b_c(arguments: ABCInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is a_b_c"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "a_b_c", named, ABCInput)
