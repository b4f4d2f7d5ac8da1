"""Tool "extend" of server "merged", wrapped by Airlock."""

from typing import Any, Literal, Never, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "merged"
TOOL_NAME = "extend"
DEFINITION_DIGEST = "sha256:5e532d7b6bd68e2b7471ac9d9c1698dcdd0e1c5ce81af491c99cf490cc4a34a5"


class ExtendInputIt(TypedDict):
    id: Required[str]
    size: NotRequired[int]
    extra: Required[bool]


class ExtendInput(TypedDict):
    it: NotRequired[ExtendInputIt]
    narrow: NotRequired[Literal["a", "b"]]
    number: NotRequired[int]
    never: NotRequired[Never]
    both: NotRequired[int]


async def extend(arguments: ExtendInput = {}, /, **named: Any) -> ToolResult:
    """Parts that must all fit"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "extend", named, ExtendInput)
