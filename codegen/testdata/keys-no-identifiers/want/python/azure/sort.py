"""Tool "sort" of server "azure", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "azure"
TOOL_NAME = "sort"
DEFINITION_DIGEST = "sha256:1e318084af4cab9c1d4d16c4b96a6b9b2b8de0ae1fdb73a649784458ab3e154a"


SortInput = TypedDict("SortInput", {
    "orderBy": NotRequired[str],
    "order_by": NotRequired[str],
    "str": NotRequired[str],
    "list": NotRequired[list[str]],
    "SortInput": NotRequired[str],
})


async def sort(arguments: SortInput = {}, /, **named: Any) -> ToolResult:
    """Keys that differ in a letter, and keys that are types"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "sort", named, SortInput)
