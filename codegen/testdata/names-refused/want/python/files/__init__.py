"""2 tools of server "files", as async functions of one dict, or of keyword arguments.

good: The only one that is good
twice: Two
Left out: tool \"\" has no wrapper: its name is empty
Left out: tool "../../etc/passwd" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
Left out: tool "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" has no wrapper: its name is 129 bytes long, the protocol allows 128
Left out: tool "good\\n" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
Left out: tool "naïve" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
Left out: tool "two words" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
Left out: tool "x;import os" has no wrapper: its name holds characters that the protocol forbids; it allows A-Z, a-z, 0-9, _, - and .
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
