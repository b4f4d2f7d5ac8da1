"""Tool "get.document" of server "google-drive", wrapped by Airlock."""

from typing import Any, Literal, NotRequired, Required, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "google-drive"
TOOL_NAME = "get.document"
DEFINITION_DIGEST = "sha256:e6f13ec90e8e9bafae4953033803f6426533059692cd5f97e162d99bc0a76b91"


class GetDocumentInputOwner(TypedDict):
    mail: Required[str]
    """Pattern: ^.+@.+$. At most 254 characters."""
    isTeam: NotRequired[bool]


class GetDocumentInput(TypedDict):
    documentId: Required[str]
    """The document's ID."""
    fields: NotRequired[list[str]]
    """Which fields to return. Default: []."""
    format: NotRequired[Literal["md", "html"] | None]
    """Default: "md"."""
    page: NotRequired[int]
    """1 to 100."""
    since: NotRequired[str | None]
    """Deprecated. Format: date-time."""
    owner: NotRequired[GetDocumentInputOwner]
    """Who owns it."""


class GetDocumentOutput(TypedDict):
    title: Required[str]
    bytes: NotRequired[int]


async def get_document(arguments: GetDocumentInput | None = None, /, **named: Any) -> "ToolResult[GetDocumentOutput]":
    """Get document.

    Get one document. Its text comes as Markdown.

    Large documents take a while.

    The server says: only reads.
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "get_document", named, GetDocumentInput)
