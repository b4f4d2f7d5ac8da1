"""Tool "aBC" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "aBC"
DEFINITION_DIGEST = "sha256:dcfc27b578ebda0076193307cb554d76881ea52a5f727490cb551f78d64fc36f"


class ABcInput(TypedDict):
    pass


async def a_bc(arguments: ABcInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is aBC"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "a_bc", named, ABcInput)
