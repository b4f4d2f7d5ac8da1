"""Tool "invoke" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "invoke"
DEFINITION_DIGEST = "sha256:4bbf0edf2ecd2790f5429455d17e352841767633d25f10443c801f565ecc0ac3"


class InvokeInput(TypedDict):
    pass


async def invoke(arguments: InvokeInput = {}, /, **named: Any) -> ToolResult:
    """The tool invoke"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "invoke", named, InvokeInput)
