"""Tool "self" of server "tree", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "tree"
TOOL_NAME = "self"
DEFINITION_DIGEST = "sha256:8958d492bad8a2a86040ab37cf2443fdd540c7eedd1d5466f5236c0996c21d46"


SelfInput = TypedDict("SelfInput", {
    "and": NotRequired[list["SelfInput"]],
    "not": NotRequired["SelfInput"],
    "term": NotRequired[str],
})


async def self(arguments: SelfInput = {}, /, **named: Any) -> ToolResult:
    """The whole schema again"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "self", named, SelfInput)
