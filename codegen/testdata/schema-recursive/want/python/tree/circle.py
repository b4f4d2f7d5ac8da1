"""Tool "circle" of server "tree", wrapped by Airlock."""

from typing import Any, NotRequired, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "tree"
TOOL_NAME = "circle"
DEFINITION_DIGEST = "sha256:44c657abf87799b2e6b06500bbc996a39ea25e5cb2b7008ea91b10f33f867c2d"


CircleInputB: TypeAlias = int | str


class CircleInput(TypedDict):
    a: NotRequired[Any]
    b: NotRequired[CircleInputB]


async def circle(arguments: CircleInput = {}, /, **named: Any) -> ToolResult:
    """References that never arrive, and alternatives in a circle"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "circle", named, CircleInput)
