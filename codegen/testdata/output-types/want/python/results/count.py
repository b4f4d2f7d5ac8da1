"""Tool "count" of server "results", wrapped by Airlock."""

from typing import Any, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "results"
TOOL_NAME = "count"
DEFINITION_DIGEST = "sha256:61e14ba4f5e592e93165d010c86498cfcb7573c3849cac60d1e560c8e7fb3cb4"


class CountInput(TypedDict):
    pass


CountOutput: TypeAlias = int


async def count(arguments: CountInput = {}, /, **named: Any) -> "ToolResult[CountOutput]":
    """A number"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "count", named, CountInput)
