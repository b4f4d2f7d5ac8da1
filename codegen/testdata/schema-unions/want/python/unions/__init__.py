"""4 tools of server "unions", as async functions of one dict, or of keyword arguments.

at_least_one: Alternatives that only demand keys
by_action: Alternatives of the arguments themselves
choose: Alternatives of all kinds
depends: A key that demands others
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .at_least_one import at_least_one as at_least_one, AtLeastOneInput as AtLeastOneInput
    from .by_action import by_action as by_action, ByActionInput as ByActionInput
    from .choose import choose as choose, ChooseInput as ChooseInput
    from .depends import depends as depends, DependsInput as DependsInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "at_least_one": "at_least_one AtLeastOneInput",
        "by_action": "by_action ByActionInput",
        "choose": "choose ChooseInput",
        "depends": "depends DependsInput",
    },
    {},
)
