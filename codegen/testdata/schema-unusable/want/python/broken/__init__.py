"""5 tools of server "broken", as async functions of one dict, or of keyword arguments.

deep: Nested too deep
not_a_schema: Its properties are no schemas
number: No schema at all
odd: Keywords of the wrong kind
unknown_type: A type that does not exist
"""

from servers import Server as _Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .deep import deep as deep, DeepInput as DeepInput
    from .not_a_schema import not_a_schema as not_a_schema, NotASchemaInput as NotASchemaInput
    from .number import number as number, NumberInput as NumberInput
    from .odd import odd as odd, OddInput as OddInput
    from .unknown_type import unknown_type as unknown_type, UnknownTypeInput as UnknownTypeInput
    from client.mcp_client import ToolError as ToolError

_Server.__attach__(
    __name__,
    {
        "deep": "deep DeepInput",
        "not_a_schema": "not_a_schema NotASchemaInput",
        "number": "number NumberInput",
        "odd": "odd OddInput",
        "unknown_type": "unknown_type UnknownTypeInput",
    },
    {},
)
