"""Tool "choose" of server "unions", wrapped by Airlock."""

from typing import Any, Literal, Never, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "unions"
TOOL_NAME = "choose"
DEFINITION_DIGEST = "sha256:8f4b5b452d899872e2984447f016dfdbc661f20d0ddc4becd16e065ebf99b8ca"


class ChooseInputOne(TypedDict):
    kind: Required[Literal["a"]]
    x: NotRequired[int]


class ChooseInputOne_2(TypedDict):
    kind: Required[Literal["b"]]
    y: NotRequired[str]


class ChooseInput(TypedDict):
    either: NotRequired[str | int]
    one: NotRequired[ChooseInputOne | ChooseInputOne_2]
    maybe: Required[float | None]
    many: NotRequired[str | list[str] | dict[str, Any] | bool]
    nothing: NotRequired[Never]
    anything: NotRequired[Any]
    empty: NotRequired[Any]
    same: NotRequired[float]
    flag: NotRequired[Literal[True]]
    level: NotRequired[Literal[1, 2, -3]]
    mixed: NotRequired[Literal["a", True] | float | dict[str, Any] | list[Any] | None]
    huge: NotRequired[int]
    wide: NotRequired[Literal["a", "b", "c"]]
    any: NotRequired[Any]
    typo: NotRequired[Literal["1", "2"]]


async def choose(arguments: ChooseInput | None = None, /, **named: Any) -> ToolResult:
    """Alternatives of all kinds"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "choose", named, ChooseInput)
