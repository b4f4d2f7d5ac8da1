"""Tool "index" of server "hostile", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "index"
DEFINITION_DIGEST = "sha256:5ae6ae4d30c70ef426a332dfae1056368f5591cdd21685f5408c1348409de7a6"


class IndexInput(TypedDict):
    pass


async def index(arguments: IndexInput = {}, /, **named: Any) -> ToolResult:
    """Title ## with \"\"\" heading */.

    ] ( ) `code` <b>
    - `forged` (x/y.py): a line of its own
    ## heading
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "index", named, IndexInput)
