"""Advice on names that do not exist: misspelt ones, tools of servers, what other products offer."""

import re
import sys
from difflib import get_close_matches

from airlock_guest.frames import frames_of, line_of
from airlock_guest.tree import assigning

_WRAPPERS = "servers"
_OTHER_WORDS = {
    "true": "write True",
    "false": "write False",
    "null": "write None",
    "undefined": "write None",
    "NaN": "write None, or math.nan",
    "console": "write print(…)",
    "JSON": "write `import json` and json.dumps(…) or json.loads(…)",
    "Math": "write `import math`",
    "Object": "write a dict",
    "Promise": "write `await asyncio.gather(*calls)`",
    "require": "write `import …`",
    "process": "write `import os`; there are no credentials in here",
    "globalThis": "write `result = …`",
    "fetch": "the sandbox has no network: call tools through the wrappers in `servers`",
    "axios": "the sandbox has no network: call tools through the wrappers in `servers`",
    "display": "this is not a notebook: assign what you want to return to `result`",
    "get_ipython": "this is not a notebook: nothing can be installed, and only `result` is returned",
    "sleep": "write `import asyncio` and `await asyncio.sleep(…)`",
    "this": "write the name itself",
    "new": "leave `new` out",
    "unicode": "write str",
    "xrange": "write range",
    "raw_input": "stdin is empty in here: put the values into the code",
}
_SHELL = ("ls", "cat", "cd", "pwd", "echo", "grep", "find", "mkdir", "git", "curl", "npm", "pip")
_USUAL_ALIASES = {
    "pd": "pandas", "np": "numpy", "plt": "matplotlib", "sns": "seaborn", "requests": "requests", "httpx": "httpx"}

_NOT_REACHED = "the line that sets {} was not reached: an exception or a condition came before it"

# What other products call the object, or the function, that leads to tools.
PRODUCTS = (
    "codemode", "tools", "tool", "mcp", "mcp_client", "client", "functions", "function", "default_api", "toolbox",
    "toolkit",
    "server", "session", "container", "airlock", "api", "sdk", "agent", "computer", "tool_api", "mcp_tools", "apis",
    "utcp",
)  # fmt: skip
_CALLERS = ("call_tool", "callTool", "call_mcp_tool", "callMCPTool", "run_tool", "invoke_tool", "use_mcp_tool",
            "execute_tool", "invoke", "mcp_call")  # fmt: skip
_SEARCHERS = {"search_tools": "catalog", "searchTools": "catalog", "get_tool_definition": "catalog",
              "getToolDefinition": "catalog", "catalog": ""}


def servers():
    """Return the names of all server modules."""
    return list(getattr(sys.modules.get(_WRAPPERS) or __import__(_WRAPPERS), "__all__", ()))


def functions(server):
    """Return the names of a server's functions, their aliases included."""
    __import__(f"{_WRAPPERS}.{server}")
    module = sys.modules[f"{_WRAPPERS}.{server}"]
    return [*dir(module), *vars(module).get("__aliases__", {})] if "__files__" in vars(module) else []


def plain(name):
    """Return a name without capitals and separators."""
    return "".join(c for c in name.lower() if c.isalnum())


def server_named(name):
    """Return the server module that `name` means, or None."""
    return next((server for server in servers() if plain(server) == plain(name)), None)


def tools_named(name):
    """Return the `(server, function)` pairs that `name` may mean, in any spelling and with any usual prefix."""
    parts = [part for part in re.split(r"__|[.:/]", name) if part and part not in ("mcp", "functions", "tools")]
    wanted = {plain(name), plain(parts[-1]) if parts else ""} - {""}
    server = server_named(parts[0]) if len(parts) > 1 else None
    found = []
    for each in [server] if server else servers():
        names = functions(each)
        matches = [function for function in names if plain(function) in wanted or plain(each + function) in wanted]
        found += [(each, function) for function in matches[:1]]
    return found


def tool_named(text):
    """Return advice if a text has a name that is similar to that of a tool, or ""."""
    for name in re.findall(r"[\w.-]+", text):
        found = tools_named(name) if len(name) > 2 else []
        if found:
            return _import(found)
    return ""


def _import(found):
    server, function = found[0]
    others = f" (or from {', '.join(f'servers.{each}' for each, _ in found[1:4])})" if found[1:] else ""
    return f"write `from servers.{server} import {function}`{others} and `await {function}({{…}})`"


def example(code, skip=()):
    """Return an example call of a tool, of one that the code names if possible."""
    for name in re.findall(r"[A-Za-z_][\w.]*", code):
        last = name.rpartition(".")[2]
        if len(last) > 3 and last not in skip:
            found = tools_named(last)
            if found:
                return _import(found)
    known = servers()
    if not known:
        return "no server is configured"
    shown = ", ".join(known[:10])
    return f"`from servers.<server> import <function>`; the servers are: {shown}"


def _is_ours(module):
    return module.partition(".")[0] in (_WRAPPERS, "client")


def _public(module):
    names = getattr(module, "__all__", None) or dir(module)
    return [name for name in names if isinstance(name, str) and not name.startswith("_")]


def nearest(name, known, place):
    """Return the nearest of the known names, or all of them."""
    known = sorted({candidate for candidate in known if isinstance(candidate, str) and candidate != name})
    spelt = [candidate for candidate in known if plain(candidate) == plain(name)]
    close = spelt or get_close_matches(name, known, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if not place or not known:
        return ""
    shown = ", ".join(known[:20])
    return f"{place} has: {shown}" + (f" and {len(known) - 20} more" if len(known) > 20 else "")


def _attribute(failure, message, namespace, code):
    if not isinstance(failure, AttributeError):
        return ""
    module = getattr(failure, "obj", None)
    if isinstance(module, type(sys)) and _is_ours(module.__name__):
        if failure.name in _CALLERS or module.__name__ == "client":
            return (
                f"tools are called through the wrappers: {example(code)}; or `from client.mcp_client import"
                " call_tool`"
            )
        return nearest(failure.name, _public(module), module.__name__)
    return ""


def _name(failure, message, namespace, code):
    if not isinstance(failure, NameError):
        return ""
    name = failure.name or "".join(re.findall(r"local variable '(\w+)'", message)[:1])  # an UnboundLocalError has none
    if not name:
        return ""
    if isinstance(failure, UnboundLocalError):
        frame = frames_of(failure)[-1]
        if any(line < frame.f_lineno and place == frame.f_code.co_name for line, place in assigning(name, code)):
            return _NOT_REACHED.format(name)
        return f"the function assigns {name!r} later: pass it in, or write `global {name}`"
    if name == "result" and re.search(r"^\s*result\s*==[^=]", code, re.MULTILINE):
        return "to return a value write `result = …`, with one `=`"
    if name in _OTHER_WORDS:
        return _OTHER_WORDS[name]
    if name in _SEARCHERS:
        return f"write `from client.catalog import {name}`" if _SEARCHERS[
            name] else "write `from client import catalog`"
    if name in _CALLERS:
        return "write `from client.mcp_client import call_tool`; better, the wrapper: " + example(code, skip=_CALLERS)
    frame = frames_of(failure)[-1]
    known = [*frame.f_locals, *frame.f_globals, *vars(sys.modules["builtins"])]
    return (
        _elsewhere(name, code)
        or _shell(name, failure, code)
        or _not_reached(name, failure, code)
        or nearest(name, known, "")
        or f"this program defines it nowhere, and no variable of an earlier run is left: define {name} in here"
    )


def _elsewhere(name, code):
    """Suggest the origin of a name that the code does not define, or return ""."""
    if server := server_named(name):
        return f"write `from servers import {server}`"
    if found := tools_named(name):
        return _import(found)
    if name in (*PRODUCTS, _WRAPPERS, "mcp__"):
        return f"tools are imported: {example(code, skip=PRODUCTS)}"
    if name in _USUAL_ALIASES:
        package = _USUAL_ALIASES[name]
        if _is_installed(package):
            module = "matplotlib.pyplot" if name == "plt" else package
            return f"write `import {module}{'' if module == name else f' as {name}'}`"
        return f"{package} is not installed: only the standard library and the wrappers in `servers` are"
    if name in sys.stdlib_module_names:
        return f"write `import {name}`"
    for module in (
        "datetime", "collections", "pathlib", "typing", "itertools", "functools", "dataclasses", "decimal", "time",
        "enum"):
        if hasattr(__import__(module), name):
            return f"write `from {module} import {name}`"
    return ""


def _shell(name, failure, code):
    """`ls -la`, which parses as a subtraction"""
    if name in _SHELL and re.match(rf"\s*{name}\b(?!\s*[(.=])", line_of(failure, code)):
        return (
            f'this looks like a shell command, and the language of the run is Python: write `subprocess.run("{name}'
            ' …", shell=True)`'
        )
    return ""


def _not_reached(name, failure, code):
    """Say why a name that the program does set is not there, or return ""."""
    places = assigning(name, code)
    if not places:
        return ""
    function = None if any(place is None for _, place in places) else places[0][1]
    frame = frames_of(failure)[-1].f_code.co_name
    if function in (None, frame):
        return _NOT_REACHED.format(name)
    return f"it is a variable inside {function}(): return it from there"


def _is_installed(package):
    """Report whether a package can be imported, without importing it."""
    from importlib.util import find_spec

    return find_spec(package) is not None


def _import_name(failure, message, namespace, code):
    if not isinstance(failure, ImportError) or not failure.name or isinstance(failure, ModuleNotFoundError):
        return ""
    module = sys.modules.get(failure.name)
    wanted = message.partition("cannot import name '")[2].partition("'")[0]
    if module is None or not _is_ours(failure.name):
        return ""
    if failure.name.partition(".")[0] == "client" and wanted[:1].isupper():
        return f"there is no client to make: tools are called through the wrappers: {example(code)}"
    if failure.name == _WRAPPERS:
        if server := server_named(wanted):
            return f"did you mean {server}?"
        if found := tools_named(wanted):
            return _import(found)
    return nearest(wanted, _public(module), failure.name)


def _module_use(failure, message, namespace, code):
    if isinstance(failure, TypeError) and re.search(r"'(?:module|Server)' object (?:is not|does not support)", message):
        return f"a server is a module: {example(code)}"
    return ""


def _call_tool(failure, message, namespace, code):
    """`call_tool("filesystem.read_file", {…})`"""
    if isinstance(failure, TypeError) and re.match(r"call_?[tT]ool (?:needs|has no argument) ", message):
        return f"better, the wrapper: {example(code, skip=_CALLERS)}"
    return ""


ADVISERS = (_attribute, _name, _import_name, _module_use, _call_tool)
