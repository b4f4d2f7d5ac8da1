"""1 tool of server "long", as async functions of one dict, or of keyword arguments.

configure: Configure everything
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .configure import configure as configure, ConfigureInput as ConfigureInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "configure": "configure ConfigureInput",
    },
    {},
)
