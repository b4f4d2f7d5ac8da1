"""7 tools of server "hostile", as async functions of one dict, or of keyword arguments.

comment: Ends */ comments // @ts-ignore * @type {import("fs")} x {@link x} me@example.com /*# sourceMappingURL=x */
comments: # -*- coding: latin-1 -*- # type: ignore # pyright: basic // @ts-nocheck /// <reference path="/etc/passwd"…
docstring: Ends \"\"\" docstrings ''' with \\\"\"\" and "
escapes: Looks like escapes: \\u0022 \\x22 \\N{QUOTATION MARK} ${x} {x} %s \\
index: ] ( ) `code` <b> - `forged` (x/y.py): a line of its own ## heading
invisible: Null \u0000, bidi \u202eevil\u202c, zero \u200bwidth, separators and , next line , tag \U000e0041…
values: Values of schemas
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .comment import comment as comment, CommentInput as CommentInput
    from .comments import comments as comments, CommentsInput as CommentsInput
    from .docstring import docstring as docstring, DocstringInput as DocstringInput
    from .escapes import escapes as escapes, EscapesInput as EscapesInput
    from .index import index as index, IndexInput as IndexInput
    from .invisible import invisible as invisible, InvisibleInput as InvisibleInput
    from .values import values as values, ValuesInput as ValuesInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "comment": "comment CommentInput",
        "comments": "comments CommentsInput",
        "docstring": "docstring DocstringInput",
        "escapes": "escapes EscapesInput",
        "index": "index IndexInput",
        "invisible": "invisible InvisibleInput",
        "values": "values ValuesInput",
    },
    {},
)
