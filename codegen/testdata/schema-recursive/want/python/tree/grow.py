"""Tool "grow" of server "tree", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict, Union

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "tree"
TOOL_NAME = "grow"
DEFINITION_DIGEST = "sha256:781329fa32a60555471115e695731d27dd677a4e5abdda776e4b2c08cadbfda8"


class GrowInputNode(TypedDict):
    """A node of a tree."""
    name: Required[str]
    children: NotRequired[list["GrowInputNode"]]
    parent: NotRequired[Union["GrowInputNode", None]]


class GrowInput(TypedDict):
    root: Required[GrowInputNode]


async def grow(arguments: GrowInput | None = None, /, **named: Any) -> ToolResult:
    """A recursive definition"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "grow", named, GrowInput)
