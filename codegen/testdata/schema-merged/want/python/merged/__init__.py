"""1 tool of server "merged", as async functions of one dict.

extend: Parts that must all fit
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .extend import extend as extend, ExtendInput as ExtendInput

_Server.attach(
    __name__,
    {
        "extend": "extend ExtendInput",
    },
    {},
)
