"""1 tool of server "merged", as async functions of one dict, or of keyword arguments.

extend: Parts that must all fit
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .extend import extend as extend, ExtendInput as ExtendInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "extend": "extend ExtendInput",
    },
    {},
)
