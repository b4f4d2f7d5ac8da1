"""Reads the arguments of calls as what they mean: keywords, other spellings of a key."""

from client.result import ToolError, ToolResult

_SERVER = ("server_id", "serverId", "server", "server_name", "serverName")
_TOOL = ("name", "toolName", "tool_name", "tool")
_ARGUMENTS = ("arguments", "args", "params", "parameters", "input", "tool_input", "toolInput", "tool_args")


def merge(arguments, named, inputs, wrapper):
    """Return one dict of a call's dict and its keyword arguments.

    A keyword that the tool does not know counts as the one that differs from it in
    nothing but capitals and separators: `max_results` as `maxResults`.
    """
    known = parameters(inputs)
    if arguments is None or arguments == {}:
        whole = named.get("arguments")
        if len(named) == 1 and isinstance(whole, (dict, ToolResult)) and "arguments" not in known:
            return plain_dict(whole, inputs, wrapper)
        arguments = {}
    merged = dict(plain_dict(arguments, inputs, wrapper))
    spellings = {}
    for each in known:
        spellings.setdefault(plain(each), []).append(each)
    for key, value in named.items():
        alike = spellings.get(plain(key), ())
        if key not in known and len(alike) == 1:
            key = alike[0]
        if key in merged:
            raise ToolError(
                "ValidationError", f"{wrapper} got {key!r} twice: in its dict and as a keyword", source="code")
        merged[key] = value
    return merged


def plain_dict(arguments, inputs, wrapper):
    """Return `arguments` if it is a dict, or a result that holds one; else raise ToolError."""
    if isinstance(arguments, ToolResult):
        arguments = arguments.data
    if isinstance(arguments, dict):
        return arguments
    example = ", ".join(f'"{each}": …' for each in list(parameters(inputs))[:4]) or "..."
    raise ToolError(
        "ValidationError",
        f"{wrapper} takes one dict of arguments, as in {wrapper}({{...}}); it got a {type(arguments).__name__}: "
        f"write {wrapper}({{{example}}})",
        source="code",
    )


def parameters(inputs):
    """Return the names of a tool's arguments, in order; empty if they are not known."""
    return getattr(inputs, "__annotations__", {})


def plain(name):
    """Return a name without capitals and separators, for comparing spellings."""
    return "".join(c for c in name.lower() if c.isalnum())


def call_of(function, server_id, name, arguments, named):
    """Return server, tool and arguments of a call that names them in any usual way."""
    given = dict(named)
    for key, value in (("server_id", server_id), ("name", name), ("arguments", arguments)):
        if isinstance(value, dict) and key == "server_id":
            given |= value
        elif value is not None:
            given[key] = value
    server_id, name, arguments = (_take(given, keys) for keys in (_SERVER, _TOOL, _ARGUMENTS))
    if given:
        raise TypeError(f"{function} has no argument {next(iter(given))!r}; it takes server_id, name, arguments")
    for value, key, example in ((server_id, "server_id", "crm"), (name, "name", "list_contacts")):
        if not isinstance(value, str) or not value.strip():
            raise TypeError(f'{function} needs {key}, as in {function}({{"{key}": "{example}", …}}); it got {value!r}')
    return server_id, name, arguments


def _take(given, keys):
    """Remove and return what is given under the first of `keys` that is there."""
    found = None
    for key in keys:
        if key in given:
            value = given.pop(key)
            found = value if found is None else found
    return found
