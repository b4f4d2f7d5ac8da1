"""Tool "store" of server "tree", wrapped by Airlock."""

from typing import Any, NotRequired, TypeAlias, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "tree"
TOOL_NAME = "store"
DEFINITION_DIGEST = "sha256:66069df09c57f1bb1829ad495629f37a43ff194e089d5bb391ad972955093270"


StoreInputJson: TypeAlias = str | float | bool | list["StoreInputJson"] | dict[str, "StoreInputJson"] | None


class StoreInput(TypedDict):
    json: NotRequired[StoreInputJson]


async def store(arguments: StoreInput = {}, /, **named: Any) -> ToolResult:
    """Any JSON"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "store", named, StoreInput)
