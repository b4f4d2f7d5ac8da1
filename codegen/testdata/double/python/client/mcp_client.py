"""Records what wrappers ask for, and answers with the arguments."""

import json
import sys


class ToolResult:
    """What a wrapper returns."""

    def __init__(self, data):
        self.data = data

    def __class_getitem__(cls, item):
        return cls


class ToolError(Exception):
    """What a wrapper raises."""


async def invoke(server_id, name, arguments, wrapper=None):
    """Write one line with what arrived."""
    json.dump([server_id, name, arguments, wrapper], sys.stdout)
    sys.stdout.write("\n")
    return ToolResult(arguments)
