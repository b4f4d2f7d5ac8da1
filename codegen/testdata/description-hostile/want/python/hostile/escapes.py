"""Tool "escapes" of server "hostile", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "escapes"
DEFINITION_DIGEST = "sha256:1526bc1878bd688137856ae14a7bda989f12778b75393af87bcb36c013e8f359"


class EscapesInput(TypedDict):
    pass


async def escapes(arguments: EscapesInput = {}, /, **named: Any) -> ToolResult:
    """Looks like escapes: \\u0022 \\x22 \\N{QUOTATION MARK} ${x} {x} %s \\"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "escapes", named, EscapesInput)
