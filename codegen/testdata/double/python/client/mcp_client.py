"""Records what wrappers ask for, and answers with the arguments."""

import json
import sys

from client.result import ToolError as ToolError, ToolResult


async def invoke(server_id, name, arguments, wrapper=None, named=None, inputs=None):
    """Write one line with what arrived."""
    arguments = named or arguments
    json.dump([server_id, name, arguments, wrapper], sys.stdout)
    sys.stdout.write("\n")
    return ToolResult(arguments)
