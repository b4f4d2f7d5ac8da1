"""Tool "escaped" of server "refs", wrapped by Airlock."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "refs"
TOOL_NAME = "escaped"
DEFINITION_DIGEST = "sha256:2785e5b4052375805f7319b7cafbe042e607001ec00d2671f27c5c2722b55f52"


EscapedInputABCD: TypeAlias = Literal["x", "y"]


class EscapedInput(TypedDict):
    a: NotRequired[EscapedInputABCD]


async def escaped(arguments: EscapedInput = {}, /, **named: Any) -> ToolResult:
    """A pointer with escapes"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "escaped", named, EscapedInput)
