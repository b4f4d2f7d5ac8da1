"""Tool "create-group" of server "azure", wrapped by Airlock."""

from typing import Annotated, Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "azure"
TOOL_NAME = "create-group"
DEFINITION_DIGEST = "sha256:b1e100f4b374afe4619d974732cc0c1ba9811daf115d497aec0d4538758a97d2"


CreateGroupInputAnd = TypedDict("CreateGroupInputAnd", {
    "x-loc": NotRequired[str],
})


CreateGroupInput = TypedDict("CreateGroupInput", {
    "resource-group": Required[Annotated[str, "The group."]],
    "$and": NotRequired[list[CreateGroupInputAnd]],
    "from": Required[int],
    "__private": NotRequired[str],
    "ümlaut": NotRequired[str],
    "line\nbreak": NotRequired[str],
    "\ud800": NotRequired[str],
    "1st": NotRequired[str],
})
"""Other keys are allowed."""


async def create_group(arguments: CreateGroupInput | dict[str, Any] | None = None, /, **named: Any) -> ToolResult:
    """Keys that no language takes as a name"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "create_group", named, CreateGroupInput)
