"""Tool "__init__" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "__init__"
DEFINITION_DIGEST = "sha256:866ecb031b4707d2498ba61fa48ec2f45bd1ad6efe442a379e411ffd4119e315"


class InitInput(TypedDict):
    pass


async def init(arguments: InitInput = {}, /, **named: Any) -> ToolResult:
    """The tool __init__"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "init", named, InitInput)
