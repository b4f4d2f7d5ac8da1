"""5 tools of server "results", as async functions of one dict, or of keyword arguments.

anything: An empty schema
count: A number
list: No object: the newest revision allows it
rows: A table
untyped: No promise
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .anything import anything as anything, AnythingInput as AnythingInput, AnythingOutput as AnythingOutput
    from .count import count as count, CountInput as CountInput, CountOutput as CountOutput
    from .list import list as list, ListInput as ListInput, ListOutput as ListOutput
    from .rows import rows as rows, RowsInput as RowsInput, RowsOutput as RowsOutput
    from .untyped import untyped as untyped, UntypedInput as UntypedInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "anything": "anything AnythingInput AnythingOutput",
        "count": "count CountInput CountOutput",
        "list": "list ListInput ListOutput",
        "rows": "rows RowsInput RowsOutput",
        "untyped": "untyped UntypedInput",
    },
    {},
)
