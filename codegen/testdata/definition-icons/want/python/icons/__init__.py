"""1 tool of server "icons", as async functions of one dict, or of keyword arguments.

draw: Draw
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .draw import draw as draw, DrawInput as DrawInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "draw": "draw DrawInput",
    },
    {},
)
