"""1 tool of server "long", as async functions of one dict.

configure: Configure everything
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .configure import configure as configure, ConfigureInput as ConfigureInput

_Server.attach(
    __name__,
    {
        "configure": "configure ConfigureInput",
    },
    {},
)
