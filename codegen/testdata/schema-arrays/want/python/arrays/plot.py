"""Tool "plot" of server "arrays", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "arrays"
TOOL_NAME = "plot"
DEFINITION_DIGEST = "sha256:08155f0c2f635bdaae0590ee1d0b8e47ba94cff0e446d6aca0299510260722d8"


class PlotInputPoints(TypedDict):
    x: Required[float]
    y: Required[float]


class PlotInput(TypedDict):
    any: NotRequired[list[Any]]
    texts: NotRequired[list[str]]
    """1 to 5 items."""
    pair: NotRequired[tuple[float, float] | list[float]]
    """At least 2 items."""
    rest: NotRequired[tuple[str, *tuple[int, ...]] | list[int | str]]
    old: NotRequired[tuple[str, int | None, *tuple[bool, ...]] | list[bool | int | None | str]]
    points: NotRequired[list[list[PlotInputPoints]]]
    either: NotRequired[list[str | int]]


class PlotOutput(TypedDict):
    pair: NotRequired[list[float | str]]
    """At least 2 items."""


async def plot(arguments: PlotInput = {}, /, **named: Any) -> "ToolResult[PlotOutput]":
    """Arrays, and tuples as both drafts write them"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "plot", named, PlotInput)
