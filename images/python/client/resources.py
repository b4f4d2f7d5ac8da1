"""Lists and reads the resources of MCP servers.

    found = await resources.list_resources("docs")
    guide = await resources.read_resource("docs", found[0]["uri"])

Both also exist under the JavaScript names, and take one dict of their arguments.
"""

from binascii import a2b_base64

from client.codec import decode, encode
from client.kept import call
from client.result import ToolResult, error_of
from client.transport import request

__all__ = ["list_resources", "read_resource"]

_SERVER = ("server_id", "serverId", "server")


async def list_resources(server_id=None, **named):
    """Return the resources of all servers, or of one, as a list of dicts.

    Each has `serverId`, `name` and either `uri` or, for many resources of one form,
    `uriTemplate` (RFC 6570); `title`, `description` and `mimeType` if the server gives them.
    Raises ToolError (type "RateLimit") when the code lists too often.
    """
    server_id, *_ = _given("list_resources", (server_id,), named)
    found = []
    while True:
        params = {"offset": len(found)} | ({"server_id": server_id} if server_id is not None else {})
        answer = await request("catalog/resources", encode(params, "arguments"))
        if "error" in answer:
            raise error_of(answer["error"])
        found += answer["resources"]
        if len(found) >= answer["total"] or not answer["resources"]:
            return found


async def read_resource(server_id=None, uri=None, **named):
    """Read a resource and return a ToolResult.

    `data` is a str, the value of a JSON resource, or bytes; for a resource with several parts,
    it is a list of dicts with `uri`, `mimeType` and `text` or `data`. `raw` is the ReadResourceResult.
    Raises ToolError, as the call of a tool does.
    """
    server_id, uri = _given("read_resource", (server_id, uri), named)
    params = {"server_id": server_id, "name": f"resource:{uri}", "arguments": {}}
    answer = await call(encode(params, "arguments"))
    if not answer.get("ok"):
        raise error_of(answer["error"], answer.get("raw"))
    raw = answer["raw"]
    parts = [_part(each) for each in raw["contents"]]
    if len(parts) != 1:
        return ToolResult(parts, raw)
    (only,) = parts
    return ToolResult(_value(only), raw)


def _part(content):
    """Return one content with bytes in place of base64."""
    part = {key: value for key, value in content.items() if key != "blob"}
    if "blob" in content:
        part["data"] = a2b_base64(content["blob"])
    return part


def _value(part):
    if "text" not in part:
        return part.get("data", b"")
    if "json" in str(part.get("mimeType", "")):
        try:
            return decode(part["text"])
        except (ValueError, RecursionError):
            pass
    return part["text"]


def _given(function, values, named):
    """Return the arguments of a call that gives them by position, by keyword or in one dict."""
    keys = ("server_id", "uri")[: len(values)]
    given = dict(named)
    for key, value in zip(keys, values, strict=True):
        if isinstance(value, dict) and key == "server_id":
            given |= {name: value[name] for name in (*_SERVER, "uri") if name in value}
        elif value is not None:
            given[key] = value
    found = []
    for key in keys:
        names = _SERVER if key == "server_id" else (key,)
        found.append(next((given[name] for name in names if name in given), None))
        for name in names:
            given.pop(name, None)
    given.pop("uri", None)
    if given:
        raise TypeError(f"{function} has no argument {next(iter(given))!r}; it takes {', '.join(keys)}")
    if len(keys) > 1:
        for key, value in zip(keys, found, strict=True):
            if not isinstance(value, str) or not value:
                raise TypeError(f'{function} needs {key}, as in {function}("docs", "doc://guide"); it got {value!r}')
    return found


listResources = list_resources
readResource = read_resource
