"""Tool "poison" of server "js", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "js"
TOOL_NAME = "poison"
DEFINITION_DIGEST = "sha256:a744b2b4c81daf7e35459e4ae4ac2fdac411a6c17eb9937f75bed6a157cb7596"


class PoisonInputProto(TypedDict):
    a: NotRequired[str]


PoisonInput = TypedDict("PoisonInput", {
    "__proto__": Required[PoisonInputProto],
    "constructor": NotRequired[str],
    "toString": NotRequired[str],
    "hasOwnProperty": NotRequired[bool],
})


async def poison(arguments: PoisonInput | None = None, /, **named: Any) -> ToolResult:
    """Keys that JavaScript objects have already"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "poison", named, PoisonInput)
