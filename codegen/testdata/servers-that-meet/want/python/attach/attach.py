"""Tool "attach" of server "attach", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "attach"
TOOL_NAME = "attach"
DEFINITION_DIGEST = "sha256:6cf07475deb70e46baae3abcc05f083b8c181d1eb85d3964ef6235482ee3b97d"


class AttachInput(TypedDict):
    pass


async def attach(arguments: AttachInput = {}, /, **named: Any) -> ToolResult:
    """A server named like our own code"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "attach", named, AttachInput)
