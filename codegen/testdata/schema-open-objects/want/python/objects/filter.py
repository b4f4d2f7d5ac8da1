"""Tool "filter" of server "objects", wrapped by Airlock."""

from typing import Any, TypeAlias

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "objects"
TOOL_NAME = "filter"
DEFINITION_DIGEST = "sha256:8d5a222901c5404b84a41b24b4b2e3fea8246c3d0954254f7880d1d13b6eabf8"


FilterInput: TypeAlias = dict[str, Any]


async def filter(arguments: FilterInput = {}, /, **named: Any) -> ToolResult:
    """Arguments that may be anything"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "filter", named, FilterInput)
