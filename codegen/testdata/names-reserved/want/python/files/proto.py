"""Tool "__proto__" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "__proto__"
DEFINITION_DIGEST = "sha256:d464d012364aa2cc6d4a286a5e38d1d21205315b1eb6bbbcb3db947cd828df5e"


class ProtoInput(TypedDict):
    pass


async def proto(arguments: ProtoInput = {}, /, **named: Any) -> ToolResult:
    """The tool __proto__"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "proto", named, ProtoInput)
