"""Tool "get" of server "import", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "import"
TOOL_NAME = "get"
DEFINITION_DIGEST = "sha256:1550243bfcb3cd6fd246dd90b6d5961393708b8585afdbd2fa845d4a3291ded1"


class GetInput(TypedDict):
    pass


async def get(arguments: GetInput = {}, /, **named: Any) -> ToolResult:
    """From a reserved word"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get", named, GetInput)
