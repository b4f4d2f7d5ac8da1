"""Tool "_invoke" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "_invoke"
DEFINITION_DIGEST = "sha256:4c62e038b31a3cb88d52fe92017b73b93d79d33f5b5efb7d12701065075cfc3f"


class Invoke_c8dc93Input(TypedDict):
    pass


async def invoke_c8dc93(arguments: Invoke_c8dc93Input = {}, /, **named: Any) -> ToolResult:
    """The tool _invoke"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "invoke_c8dc93", named, Invoke_c8dc93Input)
