"""Tool "odd" of server "broken", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "broken"
TOOL_NAME = "odd"
DEFINITION_DIGEST = "sha256:e86c9026e06fde238fa079fdb38aaab69ce12b2cc1354f4010cd6648ff281578"


class OddInput(TypedDict):
    pass


async def odd(arguments: OddInput = {}, /, **named: Any) -> ToolResult:
    """Keywords of the wrong kind"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "odd", named, OddInput)
