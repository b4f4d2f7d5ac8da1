"""1 tool of server "js", as async functions of one dict, or of keyword arguments.

poison: Keys that JavaScript objects have already
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .poison import poison as poison, PoisonInput as PoisonInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "poison": "poison PoisonInput",
    },
    {},
)
