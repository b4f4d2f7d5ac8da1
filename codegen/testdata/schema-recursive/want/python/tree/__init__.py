"""5 tools of server "tree", as async functions of one dict, or of keyword arguments.

circle: References that never arrive, and alternatives in a circle
grow: A recursive definition
keys_by_name: Recursion in the functional form
self: The whole schema again
store: Any JSON
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .circle import circle as circle, CircleInput as CircleInput
    from .grow import grow as grow, GrowInput as GrowInput
    from .keys_by_name import keys_by_name as keys_by_name, KeysByNameInput as KeysByNameInput
    from .self import self as self, SelfInput as SelfInput
    from .store import store as store, StoreInput as StoreInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "circle": "circle CircleInput",
        "grow": "grow GrowInput",
        "keys_by_name": "keys_by_name KeysByNameInput",
        "self": "self SelfInput",
        "store": "store StoreInput",
    },
    {},
)
