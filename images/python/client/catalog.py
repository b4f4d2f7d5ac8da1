"""Finds tools: first names and descriptions, then one whole definition.

    found = await catalog.search_tools("create an issue")
    definition = await catalog.get_tool_definition(found[0]["serverId"], found[0]["toolName"])

Both also take one dict in the shape of Airlock's MCP tools of the same names, with
`name` or `toolName`, and both exist under the JavaScript names.
"""

from client.arguments import call_of
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


async def search_tools(query="", server_id=None, detail="name+description", limit=None, **named):
    """Search the tools of all servers, or of one, and return a SearchResult.

    `detail` is "name" or "name+description"; `limit` bounds the number of tools.
    Raises ToolError (type "RateLimit") when the code searches too often.
    """
    given = {"server_id": server_id, "detail": detail, "limit": limit} | (
        query if isinstance(query, dict) else {"query": query})
    params = {
        "server_id" if key in ("serverId", "server") else key: value for key,
        value in (given | named).items() if value is not None}
    for key in params:
        if key not in ("query", "server_id", "detail", "limit"):
            raise TypeError(f"search_tools has no argument {key!r}; it takes query, server_id, detail, limit")
    answer = await request("catalog/search", encode(params, "arguments"))
    if "error" in answer:
        raise error_of(answer["error"])
    found = SearchResult(answer["tools"])
    found.missing = answer.get("missingServers", [])
    return found


async def get_tool_definition(server_id=None, name=None, **named):
    """Return the whole definition of one tool, as its server sent it.

    Raises ToolError (type "UnknownTool") when there is no such tool.
    """
    if isinstance(server_id, dict):  # the results of search_tools have more members than needed
        server_id = {key: value for key, value in server_id.items() if key not in ("title", "description")}
    server_id, name, _ = call_of("get_tool_definition", server_id, name, None, named)
    answer = await request("catalog/get", encode({"server_id": server_id, "name": name}, "arguments"))
    if "error" in answer:
        raise error_of(answer["error"])
    return answer["definition"]


searchTools = search_tools
getToolDefinition = get_tool_definition
