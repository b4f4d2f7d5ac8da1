"""1 tool of server "sys", as async functions of one dict, or of keyword arguments.

modules: A server named like a module
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .modules import modules as modules, ModulesInput as ModulesInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "modules": "modules ModulesInput",
    },
    {},
)
