"""Tool "not_a_schema" of server "broken", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "broken"
TOOL_NAME = "not_a_schema"
DEFINITION_DIGEST = "sha256:14e1942b43760d1699e34baf198a41897371f8236da3a6ec0e69388a4f44b4a4"


class NotASchemaInput(TypedDict):
    a: NotRequired[Any]
    b: NotRequired[Any]
    c: NotRequired[Any]
    d: NotRequired[str]


async def not_a_schema(arguments: NotASchemaInput = {}, /, **named: Any) -> ToolResult:
    """Its properties are no schemas"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "not_a_schema", named, NotASchemaInput)
