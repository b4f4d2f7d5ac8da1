"""Tool "invisible" of server "hostile", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "invisible"
DEFINITION_DIGEST = "sha256:062fa9eee3900de247c4ed7b3ee22dfd8b5fc1d8b2616ab82da184eb389849ed"


class InvisibleInput(TypedDict):
    pass


async def invisible(arguments: InvisibleInput = {}, /, **named: Any) -> ToolResult:
    """Null \u0000, bidi \u202eevil\u202c, zero \u200bwidth, separators
     and
    , next line
    , tag \U000e0041, variation \ufe0f\U000e0100, BOM \ufeff, lone �, NEL and  carriage
    return    tab \u3164 filler
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "invisible", named, InvisibleInput)
