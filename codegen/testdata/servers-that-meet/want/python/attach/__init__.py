"""1 tool of server "attach", as async functions of one dict, or of keyword arguments.

attach: A server named like our own code
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .attach import attach as attach, AttachInput as AttachInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "attach": "attach AttachInput",
    },
    {},
)
