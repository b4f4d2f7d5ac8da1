"""Tool "anchors" of server "refs", wrapped by Airlock."""

from typing import Any, Literal, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "refs"
TOOL_NAME = "anchors"
DEFINITION_DIGEST = "sha256:c748dcd46069e65dab6471308fdb7b0fa857fff1690bbf7be08ea46cec7ce432"


class AnchorsInputHere(TypedDict):
    n: NotRequired[int]


class AnchorsInputItem(TypedDict):
    inner: NotRequired[Literal["z"]]


class AnchorsInput(TypedDict):
    a: NotRequired[AnchorsInputHere]
    b: NotRequired[AnchorsInputItem]
    c: NotRequired[AnchorsInputItem]
    d: NotRequired[AnchorsInputHere]


async def anchors(arguments: AnchorsInput = {}, /, **named: Any) -> ToolResult:
    """Anchors, identifiers and dynamic references"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "anchors", named, AnchorsInput)
