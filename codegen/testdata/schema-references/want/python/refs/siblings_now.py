"""Tool "siblings_now" of server "refs", wrapped by Airlock."""

from typing import Any, Literal, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "refs"
TOOL_NAME = "siblings_now"
DEFINITION_DIGEST = "sha256:861289decbaa2a9d1b27f39d7bc4d72ef81bfdf2e00a3c8249a8d3628a3358c1"


class SiblingsNowInputB(TypedDict):
    x: Required[int]
    y: NotRequired[int]


class SiblingsNowInput(TypedDict):
    a: NotRequired[Literal["counts"]]
    b: NotRequired[SiblingsNowInputB]


async def siblings_now(arguments: SiblingsNowInput = {}, /, **named: Any) -> ToolResult:
    """Since 2019-09 it does"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "siblings_now", named, SiblingsNowInput)
