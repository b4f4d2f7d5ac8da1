"""Tool "class_" of server "files", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "files"
TOOL_NAME = "class_"
DEFINITION_DIGEST = "sha256:43425be5b90bda047d45d42987db08425ac1f230fd08817b1cf8a785d3052ed9"


class ClassInput(TypedDict):
    pass


async def class_(arguments: ClassInput = {}, /, **named: Any) -> ToolResult:
    """The tool class_"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "class_", named, ClassInput)
