"""Tool "modules" of server "sys", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "sys"
TOOL_NAME = "modules"
DEFINITION_DIGEST = "sha256:8789b243cfce2f1ec94b4ab204d5ba8b22214a028210967930f86441655dc8e1"


class ModulesInput(TypedDict):
    pass


async def modules(arguments: ModulesInput = {}, /, **named: Any) -> ToolResult:
    """A server named like a module"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "modules", named, ModulesInput)
