"""6 tools of server "refs", as async functions of one dict, or of keyword arguments.

anchors: Anchors, identifiers and dynamic references
escaped: A pointer with escapes
middle: A pointer into the middle of the schema
outside: What lies outside is never fetched
siblings: Before 2019-09 nothing beside $ref counts
siblings_now: Since 2019-09 it does
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .anchors import anchors as anchors, AnchorsInput as AnchorsInput
    from .escaped import escaped as escaped, EscapedInput as EscapedInput
    from .middle import middle as middle, MiddleInput as MiddleInput
    from .outside import outside as outside, OutsideInput as OutsideInput
    from .siblings import siblings as siblings, SiblingsInput as SiblingsInput
    from .siblings_now import siblings_now as siblings_now, SiblingsNowInput as SiblingsNowInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "anchors": "anchors AnchorsInput",
        "escaped": "escaped EscapedInput",
        "middle": "middle MiddleInput",
        "outside": "outside OutsideInput",
        "siblings": "siblings SiblingsInput",
        "siblings_now": "siblings_now SiblingsNowInput",
    },
    {},
)
