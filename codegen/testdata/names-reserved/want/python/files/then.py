"""Tool "then" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "then"
DEFINITION_DIGEST = "sha256:82b819831189c8dbf85abf4994ca4e621e482751dc2fc09d43f79183c8829d86"


class ThenInput(TypedDict):
    pass


async def then(arguments: ThenInput = {}, /, **named: Any) -> ToolResult:
    """The tool then"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "then", named, ThenInput)
