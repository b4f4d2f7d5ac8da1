"""Tool "outside" of server "refs", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "refs"
TOOL_NAME = "outside"
DEFINITION_DIGEST = "sha256:49cf8689ea1a1e2a4851042d24f023497704b414813041432e9e59275152ff24"


class OutsideInput(TypedDict):
    a: NotRequired[Any]
    b: NotRequired[Any]
    c: NotRequired[Any]


async def outside(arguments: OutsideInput = {}, /, **named: Any) -> ToolResult:
    """What lies outside is never fetched"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "outside", named, OutsideInput)
