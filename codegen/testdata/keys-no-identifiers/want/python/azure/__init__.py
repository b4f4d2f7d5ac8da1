"""3 tools of server "azure", as async functions of one dict, or of keyword arguments.

create_group: Keys that no language takes as a name
move: Only one of the records has such keys
sort: Keys that differ in a letter, and keys that are types
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .create_group import create_group as create_group, CreateGroupInput as CreateGroupInput
    from .move import move as move, MoveInput as MoveInput
    from .sort import sort as sort, SortInput as SortInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "create_group": "create_group CreateGroupInput",
        "move": "move MoveInput",
        "sort": "sort SortInput",
    },
    {},
)
