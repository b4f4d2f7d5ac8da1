"""Records what wrappers ask for, and answers with the arguments."""

import json
import sys

from client.result import ToolError as ToolError, ToolResult


async def invoke(server_id, name, arguments, wrapper=None):
    """Write one line with what arrived."""
    json.dump([server_id, name, arguments, wrapper], sys.stdout)
    sys.stdout.write("\n")
    return ToolResult(arguments)
