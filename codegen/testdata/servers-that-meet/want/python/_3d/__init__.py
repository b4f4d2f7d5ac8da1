"""0 tools of server "3d", as async functions of one dict, or of keyword arguments.

"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
    },
    {},
)
