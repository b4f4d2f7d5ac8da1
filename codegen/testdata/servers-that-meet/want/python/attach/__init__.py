"""1 tool of server "attach", as async functions of one dict.

attach: A server named like our own code
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .attach import attach as attach, AttachInput as AttachInput

_Server.attach(
    __name__,
    {
        "attach": "attach AttachInput",
    },
    {},
)
