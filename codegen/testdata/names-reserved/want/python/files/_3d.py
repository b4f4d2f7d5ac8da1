"""Tool "_3d" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "_3d"
DEFINITION_DIGEST = "sha256:18f1a9a91ba37de8f161adacec7d62fa5f388f7ec9cad2b874424e2a9fb2b553"


class _3dInput(TypedDict):
    pass


async def _3d(arguments: _3dInput = {}, /, **named: Any) -> ToolResult:
    """The tool _3d"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "_3d", named, _3dInput)
