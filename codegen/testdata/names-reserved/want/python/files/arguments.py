"""Tool "arguments" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "arguments"
DEFINITION_DIGEST = "sha256:667902797be6950bbb22d0351f60d06b748e8cb184862672b08eaa9ea7c07102"


class ArgumentsInput(TypedDict):
    pass


async def arguments(arguments: ArgumentsInput = {}, /, **named: Any) -> ToolResult:
    """The tool arguments"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "arguments", named, ArgumentsInput)
