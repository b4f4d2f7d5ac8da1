"""Tool "label" of server "objects", wrapped by Airlock."""

from typing import Any, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "objects"
TOOL_NAME = "label"
DEFINITION_DIGEST = "sha256:74093226188defb114a2e123ec618828138e9a151e9c64a30ede1e6af4e40f99"


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


class LabelInputRefusing(TypedDict):
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
    refusing: NotRequired[LabelInputRefusing]
    named: NotRequired[LabelInputNamed]


class LabelOutput(TypedDict):
    """Other keys are allowed."""
    id: Required[str]


async def label(arguments: LabelInput = {}, /, **named: Any) -> "ToolResult[LabelOutput]":
    """Objects with and without known keys"""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "label", named, LabelInput)
