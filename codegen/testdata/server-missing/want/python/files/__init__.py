"""1 tool of server "files", as async functions of one dict, or of keyword arguments.

read: Read a file
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .read import read as read, ReadInput as ReadInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "read": "read ReadInput",
    },
    {},
)
