"""Tool "comment" of server "hostile", wrapped by Airlock."""

from typing import Any, NotRequired, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "comment"
DEFINITION_DIGEST = "sha256:3cc0ddbf655287f3a95f882666c83e54694914d860892031b39869b195939454"


class CommentInput(TypedDict):
    a: NotRequired[str]
    """*/ export default 1; /*."""
    b: NotRequired[str]
    """@ts-ignore."""


async def comment(arguments: CommentInput = {}, /, **named: Any) -> ToolResult:
    """Ends */ comments //
    @ts-ignore
     * @type {import("fs")} x
    {@link x} me@example.com
    /*# sourceMappingURL=x */
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "comment", named, CommentInput)
