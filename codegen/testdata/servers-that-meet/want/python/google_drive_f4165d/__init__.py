"""1 tool of server "google-drive", as async functions of one dict, or of keyword arguments.

get: From the dash
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .get import get as get, GetInput as GetInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "get": "get GetInput",
    },
    {},
)
