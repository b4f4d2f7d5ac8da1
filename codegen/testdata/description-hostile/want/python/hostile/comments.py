"""Tool "comments" of server "hostile", wrapped by Airlock."""

from typing import Any, TypedDict

from client.mcp_client import ToolError as ToolError, ToolResult, invoke as _invoke

SERVER_ID = "hostile"
TOOL_NAME = "comments"
DEFINITION_DIGEST = "sha256:38259df3e3d82158887370d47712bba0071f6ead396718e1080fc4050951a7e8"


class CommentsInput(TypedDict):
    pass


async def comments(arguments: CommentsInput = {}, /, **named: Any) -> ToolResult:
    """# -*- coding: latin-1 -*-
    # type: ignore
    # pyright: basic
    // @ts-nocheck
    /// <reference path="/etc/passwd" />
    #!/bin/sh
    """
    return await _invoke(SERVER_ID, TOOL_NAME, arguments, "comments", named, CommentsInput)
