"""0 tools of server "3d", as async functions of one dict.

"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

_Server.attach(
    __name__,
    {
    },
    {},
)
