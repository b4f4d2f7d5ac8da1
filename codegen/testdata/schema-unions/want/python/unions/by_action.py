"""Tool "by_action" of server "unions", wrapped by Airlock."""

from typing import Any, Literal, Required, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "unions"
TOOL_NAME = "by_action"
DEFINITION_DIGEST = "sha256:42dda254575d232e47cfeb0d9485533fe89dd2321715608b6af9df06fd32cef2"


class ByActionInputItem(TypedDict):
    action: Required[Literal["create"]]
    size: Required[int]
    name: Required[str]


class ByActionInputItem_2(TypedDict):
    action: Required[Literal["delete"]]
    name: Required[str]


ByActionInput: TypeAlias = ByActionInputItem | ByActionInputItem_2


async def by_action(arguments: ByActionInput | None = None, /, **named: Any) -> ToolResult:
    """Alternatives of the arguments themselves"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "by_action", named, ByActionInput)
