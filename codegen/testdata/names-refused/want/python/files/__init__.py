"""2 tools of server "files", as async functions of one dict.

good: The only one that is good
twice: Two
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .good import good as good, GoodInput as GoodInput
    from .twice import twice as twice, TwiceInput as TwiceInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "good": "good GoodInput",
        "twice": "twice TwiceInput",
    },
    {},
)
