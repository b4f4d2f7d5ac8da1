"""Tool "untyped" of server "results", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "results"
TOOL_NAME = "untyped"
DEFINITION_DIGEST = "sha256:b513287546ca5a0814ef1905add8d35a3641f1e388fb0d58c7d8c49e44031b94"


class UntypedInput(TypedDict):
    pass


async def untyped(arguments: UntypedInput = {}, /, **named: Any) -> ToolResult:
    """No promise"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "untyped", named, UntypedInput)
