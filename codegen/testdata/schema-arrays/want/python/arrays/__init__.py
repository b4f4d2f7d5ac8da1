"""1 tool of server "arrays", as async functions of one dict, or of keyword arguments.

plot: Arrays, and tuples as both drafts write them
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .plot import plot as plot, PlotInput as PlotInput, PlotOutput as PlotOutput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "plot": "plot PlotInput PlotOutput",
    },
    {},
)
