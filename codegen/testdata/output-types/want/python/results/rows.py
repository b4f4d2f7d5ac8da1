"""Tool "rows" of server "results", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "results"
TOOL_NAME = "rows"
DEFINITION_DIGEST = "sha256:0b3d7010f16beaccba458543c8183b86b9a5736d7b188da92d10e388f3cc6ffb"


class RowsInput(TypedDict):
    pass


class RowsOutputRows(TypedDict):
    id: Required[int]
    name: NotRequired[str | None]


class RowsOutput(TypedDict):
    rows: Required[list[RowsOutputRows]]
    next: NotRequired[str]


async def rows(arguments: RowsInput = {}, /, **named: Any) -> "ToolResult[RowsOutput]":
    """A table"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "rows", named, RowsInput)
