"""Tool "deep" of server "broken", wrapped by Airlock."""

from typing import Any, TypeAlias

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "broken"
TOOL_NAME = "deep"
DEFINITION_DIGEST = "sha256:b8593fa0381b66d735ec2cc85589635eaf5e53de1a2d2a6f51025e6a63235fe9"


DeepInput: TypeAlias = dict[str, Any]


async def deep(arguments: DeepInput = {}, /, **named: Any) -> ToolResult:
    """Nested too deep"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "deep", named, DeepInput)
