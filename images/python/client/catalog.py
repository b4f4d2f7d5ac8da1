"""Finds tools: first names and descriptions, then one whole definition.

    found = await catalog.search_tools("create an issue")
    definition = await catalog.get_tool_definition(found[0]["serverId"], found[0]["toolName"])

Both also take one dict in the shape of Airlock's MCP tools of the same names,
and both exist under the JavaScript names.
"""

from client.codec import encode
from client.result import error_of
from client.transport import request

__all__ = ["SearchResult", "get_tool_definition", "search_tools"]


class SearchResult(list):
    """The tools that were found, best first, each a dict with `serverId`,
    `toolName` and, unless only names were asked for, `title` and `description`.

    `missing` lists the servers that could not be searched, each a dict with
    `serverId` and `problem`.
    """

    missing = ()


async def search_tools(query="", *, server_id=None, detail="name+description", limit=None):
    """Search the tools of all servers, or of one, and return a SearchResult.

    `detail` is "name" or "name+description"; `limit` bounds the number of tools.
    """
    if isinstance(query, dict):
        return await search_tools(**_arguments(query, "search_tools", "query", "server_id", "detail", "limit"))
    params = {"query": query, "server_id": server_id, "detail": detail, "limit": limit}
    given = {key: value for key, value in params.items() if value is not None}
    answer = await request("catalog/search", encode(given, "arguments"))
    found = SearchResult(answer["tools"])
    found.missing = answer.get("missing", [])
    return found


async def get_tool_definition(server_id, name=None):
    """Return the whole definition of one tool, as its server sent it.

    Raises ToolError (type "UnknownTool") when there is no such tool.
    """
    if isinstance(server_id, dict):
        return await get_tool_definition(**_arguments(server_id, "get_tool_definition", "server_id", "name"))
    answer = await request("catalog/get", encode({"server_id": server_id, "name": name}, "arguments"))
    if "error" in answer:
        raise error_of(answer["error"])
    return answer["definition"]


def _arguments(given, function, *known):
    """Turn the keys of the MCP tools ("serverId") into ours, strictly."""
    arguments = {"server_id" if key == "serverId" else key: value for key, value in given.items()}
    for key in arguments:
        if key not in known:
            raise TypeError(f"{function} has no argument {key!r}; it takes {', '.join(known)}")
    return arguments


searchTools = search_tools
getToolDefinition = get_tool_definition
