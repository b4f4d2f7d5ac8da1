"""Tool "number" of server "broken", wrapped by Airlock."""

from typing import Any, TypeAlias

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "broken"
TOOL_NAME = "number"
DEFINITION_DIGEST = "sha256:149cbdd9a10b138784f5a0cc845adf67c2bb95d6ebbbacef1f5cd5947274ea64"


NumberInput: TypeAlias = dict[str, Any]


async def number(arguments: NumberInput = {}, /, **named: Any) -> ToolResult:
    """No schema at all"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "number", named, NumberInput)
