"""Tool "read" of server "files", wrapped by Airlock."""

from typing import Any, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "read"
DEFINITION_DIGEST = "sha256:93e9f8d2a7cd06af4a016baa182150b64e14a4236a257ffd7422ccc101fda571"


class ReadInput(TypedDict):
    path: Required[str]


async def read(arguments: ReadInput | None = None, /, **named: Any) -> ToolResult:
    """Read a file"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "read", named, ReadInput)
