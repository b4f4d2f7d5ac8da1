"""Tool "attach" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "attach"
DEFINITION_DIGEST = "sha256:26f521e11c02ce35113b62903d49be43cc9446f0bd3776d9d5edfc0247b67c34"


class AttachInput(TypedDict):
    pass


async def attach(arguments: AttachInput = {}, /, **named: Any) -> ToolResult:
    """The tool print"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "attach", named, AttachInput)
