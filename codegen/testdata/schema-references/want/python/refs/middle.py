"""Tool "middle" of server "refs", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "refs"
TOOL_NAME = "middle"
DEFINITION_DIGEST = "sha256:6d0e50b3a89c72492db927b30ce092cfd1a5c7b84b4b0bc6e7694b7f93a27ba6"


class MiddleInputSource(TypedDict):
    path: Required[str]
    line: NotRequired[int]


class MiddleInput(TypedDict):
    source: NotRequired[MiddleInputSource]
    target: NotRequired[MiddleInputSource]
    lines: NotRequired[list[int]]


async def middle(arguments: MiddleInput = {}, /, **named: Any) -> ToolResult:
    """A pointer into the middle of the schema"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "middle", named, MiddleInput)
