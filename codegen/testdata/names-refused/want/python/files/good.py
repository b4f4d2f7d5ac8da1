"""Tool "good" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "good"
DEFINITION_DIGEST = "sha256:2cbd21245576687a338ac7d8ccbd7819e4cd08fe5082fc9341619816a7022776"


class GoodInput(TypedDict):
    pass


async def good(arguments: GoodInput = {}, /, **named: Any) -> ToolResult:
    """The only one that is good"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "good", named, GoodInput)
