"""Tool "depends" of server "unions", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "unions"
TOOL_NAME = "depends"
DEFINITION_DIGEST = "sha256:49d8c1e9419190b4a56c4be72b5e9de1e988c265c2626f2b797e98a4a1a54a1f"


class DependsInput(TypedDict):
    """Beside "object" it needs "version" and "kind"."""
    object: NotRequired[str]
    version: NotRequired[str]
    kind: NotRequired[str]


async def depends(arguments: DependsInput = {}, /, **named: Any) -> ToolResult:
    """A key that demands others"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "depends", named, DependsInput)
