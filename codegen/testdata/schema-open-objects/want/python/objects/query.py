"""Tool "query" of server "objects", wrapped by Airlock."""

from typing import Any, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "objects"
TOOL_NAME = "query"
DEFINITION_DIGEST = "sha256:6d1fd1d5ca3b7b55579d895909e34e57e0b7d75b807905209b846d07262ac7b0"


class QueryInput(TypedDict):
    """Other keys are allowed."""
    q: Required[str]
    undescribed: Required[Any]


async def query(arguments: QueryInput | dict[str, Any] | None = None, /, **named: Any) -> ToolResult:
    """Arguments with more keys than are known"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "query", named, QueryInput)
