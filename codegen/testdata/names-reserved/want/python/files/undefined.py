"""Tool "undefined" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "undefined"
DEFINITION_DIGEST = "sha256:4ba707132a38151c817ba94daf8ceabe8a2d1b67d461958c6ead8a34206ccb48"


class UndefinedInput(TypedDict):
    pass


async def undefined(arguments: UndefinedInput = {}, /, **named: Any) -> ToolResult:
    """The tool undefined"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "undefined", named, UndefinedInput)
