"""Tool "unknown_type" of server "broken", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "broken"
TOOL_NAME = "unknown_type"
DEFINITION_DIGEST = "sha256:630bf8e379accec3abeaf3fc3b00ebe7331625babcccfaacd8e80c8f55ee951b"


class UnknownTypeInput(TypedDict):
    when: NotRequired[Any]
    what: NotRequired[str]


async def unknown_type(arguments: UnknownTypeInput = {}, /, **named: Any) -> ToolResult:
    """A type that does not exist"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "unknown_type", named, UnknownTypeInput)
