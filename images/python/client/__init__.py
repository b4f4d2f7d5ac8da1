"""What code inside an Airlock sandbox uses to reach its tools.

Code normally imports generated wrappers (`from servers.crm import get_account`)
and never needs this package by name. Below the wrappers are:

- `client.mcp_client`: `call_tool`, `ToolResult` and `ToolError`;
- `client.catalog`: `search_tools` and `get_tool_definition`;
- `client.resources`: `list_resources` and `read_resource`.

`client.attach` hands a file to the caller; see `client.attachments`.

The modules load on first use: a run that calls no tool pays nothing for them.
"""

__all__ = ["attachments", "catalog", "mcp_client", "resources"]

# Names that can also be imported from the package itself.
_OFFERED = {
    "client.mcp_client": ("call_tool", "callTool", "ToolError", "ToolResult"),
    "client.attachments": ("attach", "Attachment"),
    "client.catalog": ("search_tools", "searchTools", "get_tool_definition", "getToolDefinition"),
    "client.resources": ("list_resources", "listResources", "read_resource", "readResource"),
}

# The id of the process that may keep a connection while it makes no calls: the
# guest sets it to its own. See client.transport.
home_process = None


def __getattr__(name):
    if name in __all__:
        from importlib import import_module

        return import_module("client." + name)
    for module, offered in _OFFERED.items():
        if name in offered:
            return getattr(__import__(module, fromlist=[name]), name)
    raise AttributeError(f"module 'client' has no attribute {name!r}")
