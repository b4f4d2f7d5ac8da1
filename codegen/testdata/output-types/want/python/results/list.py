"""Tool "list" of server "results", wrapped by Airlock."""

from typing import Any, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "results"
TOOL_NAME = "list"
DEFINITION_DIGEST = "sha256:427e9f3208595a84157f3c98cca7d97093999c2d812456ae2bdcfdbfa8300a2b"


class ListInput(TypedDict):
    pass


ListOutput: TypeAlias = list[str]


async def list(arguments: ListInput = {}, /, **named: Any) -> "ToolResult[ListOutput]":
    """No object: the newest revision allows it"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "list", named, ListInput)
