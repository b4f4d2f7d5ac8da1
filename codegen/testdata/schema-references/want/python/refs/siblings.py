"""Tool "siblings" of server "refs", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "refs"
TOOL_NAME = "siblings"
DEFINITION_DIGEST = "sha256:64a0934208ccc02de92f441ad9fdfc042a50ebe74117b6ec9ccf2454d58d08e1"


class SiblingsInput(TypedDict):
    a: NotRequired[str]


async def siblings(arguments: SiblingsInput = {}, /, **named: Any) -> ToolResult:
    """Before 2019-09 nothing beside $ref counts"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "siblings", named, SiblingsInput)
