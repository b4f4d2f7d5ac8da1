"""Tool "keys.by-name" of server "tree", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "tree"
TOOL_NAME = "keys.by-name"
DEFINITION_DIGEST = "sha256:ce93a71d647f64bd2438d60f2d614cb2f9568f8954897cf51986db07014330cc"


KeysByNameInput = TypedDict("KeysByNameInput", {
    "sub-key": NotRequired["KeysByNameInput"],
    "list-of": NotRequired[list["KeysByNameInput"]],
})


async def keys_by_name(arguments: KeysByNameInput = {}, /, **named: Any) -> ToolResult:
    """Recursion in the functional form"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "keys_by_name", named, KeysByNameInput)
