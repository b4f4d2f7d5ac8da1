"""3 tools of server "objects", as async functions of one dict, or of keyword arguments.

filter: Arguments that may be anything
label: Objects with and without known keys
query: Arguments with more keys than are known
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .filter import filter as filter, FilterInput as FilterInput
    from .label import label as label, LabelInput as LabelInput, LabelOutput as LabelOutput
    from .query import query as query, QueryInput as QueryInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "filter": "filter FilterInput",
        "label": "label LabelInput LabelOutput",
        "query": "query QueryInput",
    },
    {},
)
