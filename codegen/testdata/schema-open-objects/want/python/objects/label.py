"""Tool "label" of server "objects", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolResult, invoke as _invoke

SERVER_ID = "objects"
TOOL_NAME = "label"
DEFINITION_DIGEST = "sha256:658063fa173af84ee5157d835b8bbb34fe62010456cebefcdc5f94b74ef9254a"


class LabelInputOpen(TypedDict):
    """Other keys are allowed."""
    id: NotRequired[str]


class LabelInputClosed(TypedDict):
    id: NotRequired[str]


class LabelInputNone(TypedDict):
    pass


class LabelInputTyped(TypedDict):
    """Other keys are allowed."""
    id: NotRequired[str]


class LabelInputNamed(TypedDict):
    de: NotRequired[str]
    en: NotRequired[str]


class LabelInput(TypedDict):
    bare: NotRequired[dict[str, Any]]
    labels: NotRequired[dict[str, str]]
    open: NotRequired[LabelInputOpen | dict[str, Any]]
    closed: NotRequired[LabelInputClosed]
    none: NotRequired[LabelInputNone]
    typed: NotRequired[LabelInputTyped | dict[str, Any]]
    patterned: NotRequired[dict[str, str | int]]
    named: NotRequired[LabelInputNamed]


class LabelOutput(TypedDict):
    """Other keys are allowed."""
    id: Required[str]


async def label(arguments: LabelInput = {}) -> "ToolResult[LabelOutput]":
    """Objects with and without known keys"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, wrapper="label")
