"""Tool "http_server" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "http_server"
DEFINITION_DIGEST = "sha256:ff86430db7642d7eeec7ed18b7958b19e4e300664b44cd8287d04e536537bf43"


class HttpServerInput(TypedDict):
    pass


async def http_server(arguments: HttpServerInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is http_server"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "http_server", named, HttpServerInput)
