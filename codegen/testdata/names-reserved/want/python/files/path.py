"""Tool "__path__" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "__path__"
DEFINITION_DIGEST = "sha256:6ffe99df8cc441a9e6be6e31cb6b70e45c5637ceab081315ef60c5dc109e0b6b"


class PathInput(TypedDict):
    pass


async def path(arguments: PathInput = {}, /, **named: Any) -> ToolResult:
    """The tool __path__"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "path", named, PathInput)
