"""Tool "values" of server "hostile", wrapped by Airlock."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "values"
DEFINITION_DIGEST = "sha256:45d0327ffa0d7562d9c299ba276589a70740625e97b327d533f7f40fa056c7a8"


ValuesInput = TypedDict("ValuesInput", {
    "a": NotRequired[Literal["\"]; import os; x = [\"", "*/", "\u2028", "\ud800", "\\", "\n"]],
    "b\"]: str; import os": NotRequired[str],
    "c": NotRequired[Annotated[str, "Default: {\"\\\"\\\"\\\"\": \"*/\"}. Format: */\"\"\". Pattern: \"\"\"*/."]],
})


async def values(arguments: ValuesInput = {}, /, **named: Any) -> ToolResult:
    """Values of schemas"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "values", named, ValuesInput)
