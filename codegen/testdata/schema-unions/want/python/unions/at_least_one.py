"""Tool "at_least_one" of server "unions", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "unions"
TOOL_NAME = "at_least_one"
DEFINITION_DIGEST = "sha256:9dd331086bc403b2a2800830e25e47c7e1d96914ab5c97d77f63b31593febcc5"


class AtLeastOneInput(TypedDict):
    """Needs "id", or "name"."""
    id: NotRequired[str]
    name: NotRequired[str]


async def at_least_one(arguments: AtLeastOneInput | None = None, /, **named: Any) -> ToolResult:
    """Alternatives that only demand keys"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "at_least_one", named, AtLeastOneInput)
