"""Tool "list_documents" of server "google-drive", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "google-drive"
TOOL_NAME = "list_documents"
DEFINITION_DIGEST = "sha256:6da2dea70bc1bb5a297e594b19ae881f4343db421eca93619a1c8361174c269b"


class ListDocumentsInput(TypedDict):
    pass


async def list_documents(arguments: ListDocumentsInput = {}, /, **named: Any) -> ToolResult:
    """List all documents."""
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "list_documents", named, ListDocumentsInput)
