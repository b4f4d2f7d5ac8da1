"""Finds the part of a value that has no JSON form, and suggests what to write instead.

Loaded only after encoding has failed, so it may take its time. It walks
without recursion, because the value may be nested without end.
"""

from math import isfinite

from client.keys import key_text

_MOST_VALUES = 1_000_000  # walked before giving up on naming the place
_DEEPEST = 900  # levels; encoding stops near the interpreter's recursion limit
_LONGEST_PATH = 300  # characters

_INSTEAD = {
    "set": "use sorted(x) or list(x)",
    "frozenset": "use sorted(x) or list(x)",
    "bytes": "use x.decode() or base64.b64encode(x).decode()",
    "bytearray": "use x.decode() or base64.b64encode(x).decode()",
    "memoryview": "use bytes(x).decode() or base64.b64encode(x).decode()",
    "datetime": "use x.isoformat()",
    "date": "use x.isoformat()",
    "time": "use x.isoformat()",
    "timedelta": "use x.total_seconds()",
    "Decimal": "use str(x) or float(x)",
    "Fraction": "use str(x) or float(x)",
    "complex": "use [x.real, x.imag]",
    "UUID": "use str(x)",
    "PosixPath": "use str(x)",
    "generator": "use list(x)",
    "map": "use list(x)",
    "filter": "use list(x)",
    "zip": "use list(x)",
    "range": "use list(x)",
    "enumerate": "use list(x)",
    "reversed": "use list(x)",
    "deque": "use list(x)",
    "dict_keys": "use list(x)",
    "dict_values": "use list(x)",
    "dict_items": "use dict(x) or list(x)",
    "mappingproxy": "use dict(x)",
    "function": "call it",
    "method": "call it",
    "builtin_function_or_method": "call it",
    "Task": "await it",
    "Future": "await it",
    "async_generator": "use [item async for item in x]",
}


def describe(value, root, cause):
    """Return one sentence on why `value` has no JSON form; it never raises."""
    try:
        return _walk(value, root) or f"{root} cannot be turned into JSON: {type(cause).__name__}: {cause}"
    except BaseException as broken:  # the value's own methods may do anything
        return f"{root} cannot be turned into JSON: reading it raised {type(broken).__name__}"


def _walk(value, root):
    """Return what is wrong in the first bad place, depth first; None if nothing is."""
    open_containers = set()
    stack = [(value, root, 0, False)]
    for _ in range(_MOST_VALUES):
        if not stack:
            return None
        value, path, depth, leaving = stack.pop()
        if leaving:
            open_containers.discard(id(value))
            continue
        convert = getattr(type(value), "__json__", None)
        if convert is not None:
            value = convert(value)
        if not isinstance(value, (dict, list, tuple)):
            problem = _leaf(value, path)
            if problem:
                return problem
            continue
        if id(value) in open_containers:
            return f"{path} contains itself: JSON cannot hold a cycle"
        if depth >= _DEEPEST:
            return f"{root} is nested deeper than {_DEEPEST} levels: flatten it"
        open_containers.add(id(value))
        stack.append((value, path, depth, True))
        problem = _push_members(stack, value, path, depth + 1)
        if problem:
            return problem
    return None


def _push_members(stack, value, path, depth):
    if isinstance(value, dict):
        members, seen = [], set()
        for key, member in value.items():
            if not isinstance(key, (str, int, float, type(None))):
                return (
                    f"{path} has the key {_short(key)}, a {type(key).__name__}: JSON keys are strings, so write"
                    " str(key)"
                )
            if isinstance(key, float) and not isfinite(key):
                return f"{path} has the key {key!r}, which is no JSON number: write str(key)"
            text = key_text(key)
            if text in seen:
                return f"{path} has two keys that JSON writes as {_short(text)}: one of their values would be lost"
            seen.add(text)
            members.append((member, _member(path, key), depth, False))
    else:
        members = [(member, f"{path}[{i}]", depth, False) for i, member in enumerate(value)]
    stack.extend(reversed(members))
    return None


def _leaf(value, path):
    if value is None or isinstance(value, (str, bool)):
        return None
    if isinstance(value, int):
        try:
            int.__repr__(value)
        except ValueError:
            return f"{path} is an integer with too many digits: round it, or write hex(x)"
        return None
    if isinstance(value, float):
        if isfinite(value):
            return None
        return f"{path} is {value!r}, which JSON cannot hold: use None or a string"
    name = type(value).__name__
    if name == "coroutine":
        call = f"{value.__name__}(...)"
        return f"{path} is the coroutine {call}, which was never awaited: write `await {call}`"
    article = "an" if name[:1].lower() in "aeio" else "a"
    return f"{path} is {article} {name}, which JSON cannot hold: {_instead(value, name)}"


def _instead(value, name):
    if name in _INSTEAD:
        return _INSTEAD[name]
    if hasattr(value, "add_done_callback"):
        return "await it"
    if hasattr(value, "getvalue"):
        return "use x.getvalue()"
    if name == "Match":
        return "use x.group() or x.groups()"
    if isinstance(value, BaseException):
        return "use str(x)"
    if isinstance(value, type):
        return "use x.__name__"
    if hasattr(type(value), "__dataclass_fields__"):
        return "use dataclasses.asdict(x)"
    if hasattr(value, "value") and hasattr(type(value), "__members__"):
        return "use x.value or x.name"
    if hasattr(value, "to_dicts"):
        return "use x.to_dicts()"
    if name == "DataFrame":
        return 'use x.to_dict("records")'
    if name == "Figure" or hasattr(value, "savefig"):
        return "show it with client.attach(x)"
    if hasattr(value, "tolist"):
        return "use x.tolist()"
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return "use dict(x)"
    if hasattr(value, "readable"):
        return "use x.read()"
    if name.startswith(("IPv4", "IPv6")):
        return "use str(x)"
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return "use vars(x)"
    return "use a dict, list, string, number, boolean or None made from it"


def _member(path, key):
    """Return the path of a member as one would write it in code, cut when long."""
    if len(path) > _LONGEST_PATH:
        return path
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{_cut(key)}"
    return f"{path}[{_short(key)}]"


def _short(key):
    return _cut(repr(key))


def _cut(text):
    return text if len(text) <= 60 else text[:57] + "..."
