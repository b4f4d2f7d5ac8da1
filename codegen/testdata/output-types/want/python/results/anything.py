"""Tool "anything" of server "results", wrapped by Airlock."""

from typing import Any, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "results"
TOOL_NAME = "anything"
DEFINITION_DIGEST = "sha256:e042b57d4483497a8dca44cba22d870219fe2cd4c2c3c5a186ed82e077439927"


class AnythingInput(TypedDict):
    pass


AnythingOutput: TypeAlias = Any


async def anything(arguments: AnythingInput = {}, /, **named: Any) -> "ToolResult[AnythingOutput]":
    """An empty schema"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "anything", named, AnythingInput)
