"""Tool "HTTPServer" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "HTTPServer"
DEFINITION_DIGEST = "sha256:9242fe972760a16c984a419b8165b18b7cc28597b041dddb1ec4045331ae08b3"


class HttpServer_7e64dbInput(TypedDict):
    pass


async def http_server_7e64db(arguments: HttpServer_7e64dbInput = {}, /, **named: Any) -> ToolResult:
    """The tool whose own name is HTTPServer"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "http_server_7e64db", named, HttpServer_7e64dbInput)
