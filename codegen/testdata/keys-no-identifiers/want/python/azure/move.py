"""Tool "move" of server "azure", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "azure"
TOOL_NAME = "move"
DEFINITION_DIGEST = "sha256:18d958a37119ea02792e67b06f5f509a5fa0d78c53a7c9e09c0c8fb86871d1d7"


MoveInputTo = TypedDict("MoveInputTo", {
    "a b": NotRequired[str],
})


MoveInput = TypedDict("MoveInput", {
    "to": NotRequired[MoveInputTo],
    "__proto__": NotRequired[str],
})


async def move(arguments: MoveInput = {}, /, **named: Any) -> ToolResult:
    """Only one of the records has such keys"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "move", named, MoveInput)
