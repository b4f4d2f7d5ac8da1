"""Tool "getURLList" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "getURLList"
DEFINITION_DIGEST = "sha256:5d744bad2789018b9114d63dfcbebf24dc8ab76415d7a0c368e6752297ad21b6"


class GetUrlListInput(TypedDict):
    pass


async def get_url_list(arguments: GetUrlListInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is getURLList"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get_url_list", named, GetUrlListInput)
