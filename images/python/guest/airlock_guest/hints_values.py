"""Advice on what calls return, and on awaiting them."""

import re
import sys

from airlock_guest.execute import NAME
from airlock_guest.frames import frames_of, line_of
from client.result import ToolError, ToolResult


def _forgotten_await(failure, message, namespace, code):
    if not isinstance(failure, (TypeError, AttributeError)) or "coroutine" not in message:
        return ""
    if "coroutines cannot be used with run_in_executor" in message:
        return "it is async already: write `await f(…)` or `await asyncio.gather(f(…), g(…))`"
    if "Passing coroutines is forbidden" in message:
        return "asyncio.wait takes tasks: write `await asyncio.gather(*calls)`"
    if re.search(r"await\s+[\w.]+\(.*\)\s*[\[.]", line_of(failure, code)):
        return "`await` takes in all that follows: write `(await f(…))[…]`, with parentheses"
    for value in _values_in_reach(failure, namespace):
        if type(value).__name__ == "coroutine" and value.cr_frame is not None:
            call = f"{value.__name__}(...)"
            return f"{call} was never awaited: write `await {call}`"
    return "a call was never awaited: write `await` before it"


def _values_in_reach(failure, namespace):
    """Yield what the failing line may have meant: the object itself, locals, globals."""
    yield getattr(failure, "obj", None)
    for frame in reversed(frames_of(failure)):
        if frame.f_code.co_filename == NAME:
            yield from list(frame.f_locals.values())
    yield from list(namespace.values())


def _awaited_twice(failure, message, namespace, code):
    if not isinstance(failure, TypeError) or "can't be used in 'await' expression" not in message:
        return ""
    if "ToolResult" in message:
        return "it is a result already: it was awaited before"
    if " function " in message or " method " in message:
        return "call it: write `await f(…)`"
    return "only async functions are awaited: leave the `await` out"


def _gather(failure, message, namespace, code):
    if not isinstance(failure, TypeError):
        return ""
    if "unhashable type: 'list'" in message and "gather(" in line_of(failure, code):
        return "write `await asyncio.gather(*calls)`, with the star"
    if "An asyncio.Future, a coroutine or an awaitable is required" in message:
        return "give gather the calls themselves, not awaited: `await asyncio.gather(*[f(x) for x in …])`"
    return ""


def _asynchronous(failure, message, namespace, code):
    """Asynchronous values in the place of plain ones, and the reverse."""
    line = line_of(failure, code)
    if isinstance(failure, TypeError) and (
        "'async_generator' object is not" in message or ("can only join an iterable" in message and "await " in line)
    ):
        return "an `await` in a generator expression makes it asynchronous: write a list, as in sum([… for … in …])"
    if isinstance(failure, TypeError) and "'async for' requires an object with __aiter__" in message:
        return "loop over it with a plain `for`"
    if isinstance(
        failure, TypeError) and "asynchronous context manager protocol" in message and "'Server'" not in message:
        return "write a plain `with`, or none"
    if type(failure).__name__ in ("PicklingError", "MaybeEncodingError", "AttributeError", "TypeError"):
        if "pickle 'coroutine'" in message:
            return (
                "an async function does not run in another process: write `await asyncio.gather(*[f(x) for x in"
                " rows])`"
            )
        if "an't pickle" in message and ("<lambda>" in message or "local object" in message):
            return (
                "another process finds only functions that are made with `def` at the top level: make it one, or use"
                " threads"
            )
    return ""


def _function(failure, message, namespace, code):
    """`read_file.sync(…)`, `read_file.call(…)`"""
    if isinstance(failure, AttributeError) and getattr(failure.obj, "__module__", "").partition(".")[0] == "servers":
        if callable(failure.obj) and hasattr(failure.obj, "__code__"):
            return f"it is an async function: write `await {failure.obj.__name__}({{…}})`"
    return ""


def _standard(failure, message, namespace, code):
    """What of the standard library is often taken for something else."""
    if isinstance(failure, AttributeError):
        if "module 'datetime' has no attribute" in message:
            return "the module has a class of the same name: write `from datetime import datetime`"
        if "type object 'datetime.datetime' has no attribute" in message:
            return (
                "`datetime` is the class in here: leave the first `datetime.` out, or write `from datetime import"
                f" {failure.name}`"
            )
        if re.match(r"'list' object has no attribute", message) and failure.name not in ("data", "content", "text"):
            return f"it is a list: take its members, as in [x[{failure.name!r}] for x in rows]"
    if isinstance(failure, TypeError) and "not supported between instances of 'dict' and 'dict'" in message:
        return 'say by what to order: key=lambda row: row["…"]'
    if isinstance(failure, TypeError) and re.search(r"expected str instance, \w+ found", message):
        return "join takes texts: write [str(x) for x in rows]"
    if isinstance(failure, TypeError) and re.search(
        r"concatenate str \(not \"(?!ToolResult)|for \+: '(?:int|float)' and 'str'", message):
        return "a text and a number are not added: write f\"{x}\" or str(x), or int(text)"
    return ""


def _running_loop(failure, message, namespace, code):
    if isinstance(failure, RuntimeError) and (
        "asyncio.run() cannot be called from a running event loop" in message
        or "This event loop is already running" in message
        or "Cannot run the event loop while another loop is running" in message
    ):
        return "the code has a top-level await, so a loop is running: write `await main()` instead"
    if isinstance(failure, RuntimeError) and "no running event loop" in message:
        return "start it inside `async def main()`, or with a top-level `await`"
    return ""


def _parsed_already(failure, message, namespace, code):
    if not isinstance(failure, TypeError) or "JSON object must be str" not in message:
        return ""
    return "it is parsed already: use it as it is; `.data` of a wrapper's result is the plain value"


def _form(text):
    """Say how a text is read: as JSON, or as a Python literal that looks like JSON."""
    from ast import literal_eval
    from json import loads

    for read, advice in (
        (loads, "it is text with JSON in it: read it with json.loads"),
        (literal_eval, "it is text with a Python literal in it, not JSON: read it with ast.literal_eval"),
    ):
        try:
            if isinstance(read(text[:1 << 20]), (dict, list, tuple)):
                return advice
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return "it is text, and not JSON: print it, to see its form"


def _text_form(failure, code):
    """Say how the text is read that the failing line takes apart; name no form if that text is not known."""
    line, frame = line_of(failure, code), frames_of(failure)[-1]
    texts = [
        value for name, held in frame.f_locals.items() for value in (held, getattr(held, "data", None))
        if isinstance(value, str) and re.search(rf"\b{re.escape(name)}\b", line)
    ]
    if len(texts) == 1:
        return _form(texts[0])
    return "the value is text: if it is JSON, read it with json.loads; else print it first, to see its form"


def _not_json(failure, message, namespace, code):
    """`json.loads` of a Python literal."""
    if type(failure).__name__ != "JSONDecodeError" or not isinstance(getattr(failure, "doc", None), str):
        return ""
    if "ast.literal_eval" in _form(failure.doc):
        return "it is a Python literal, not JSON: read it with ast.literal_eval"
    return ""


def _text_as_object(failure, message, namespace, code):
    if isinstance(failure, TypeError) and "'builtin_function_or_method' object is not" in message:
        return "it is a method, not a key of that name: write `r[\"items\"]` for `r.items`"
    if isinstance(failure, TypeError) and "string indices must be integers" in message:
        return _text_form(failure, code)
    if isinstance(failure, TypeError) and "list indices must be integers" in message:
        return "the value is a list: take an element, as in [0], or loop over it"
    return ""


_WHOLE = {"body", "json", "output", "parsed", "result", "results", "text", "value"}  # what other clients call the data


def _attribute_of_data(failure, message, namespace, code):
    if not isinstance(failure, AttributeError) or isinstance(failure.obj, type(sys)):
        return ""
    if isinstance(failure.obj, ToolResult):
        in_it = isinstance(failure.obj.data, dict) and failure.name in failure.obj.data
        return "the tool's value is in `.data`, parsed already" if failure.name in _WHOLE and not in_it else ""
    value, name = failure.obj, failure.name
    if isinstance(value, dict) and name in value:
        return f"it is a dict: write [{name!r}]"
    if isinstance(value, dict) and value.keys() >= {"ok"} and "raw" in value | {"raw": 0}:
        return "call_tool returns a dict: write [\"data\"] if [\"ok\"] is True"
    if isinstance(value, dict) and name not in ("append", "extend", "add"):
        return f"it is a dict with {_keys(value)}"
    if isinstance(value, list) and name in ("get", "items", "keys", "values"):
        return f"it is a list of {len(value)}: take an element, as in [0], or loop over it"
    if isinstance(value, str):
        return f"{_form(value)}; a loop over a dict gives its keys, r[\"items\"] what it holds"
    if value is None:
        return "the value before the dot is None: look at what the call returned"
    return ""


def _keys(value):
    keys = ", ".join(repr(key) for key in list(value)[:20])
    return f"the keys {keys}" if keys else "no keys"


def _missing_key(failure, message, namespace, code):
    """Name the keys of the dict that lacks one, if the failing line identifies the dict."""
    if type(failure) is not KeyError or len(failure.args) != 1 or not failure.__traceback__:
        return ""
    frame = frames_of(failure)[-1]
    if frame.f_code.co_filename != NAME:
        return ""
    line = line_of(failure, code)
    named = [
        (shown, value)
        for name, held in frame.f_locals.items()
        for shown,
        value in ((name, held), (name, getattr(held, "data", None)), (f"{name}.data", getattr(held, "data", None)))
        if type(value) is dict and value and f"{shown}[" in line
        and failure.args[0] not in value and all(isinstance(key, str) for key in value)
    ]
    if len(named) != 1:
        return ""
    name, value = named[0]
    return f"`{name}` has {_keys(value)}"


def _needs_data(failure, message, namespace, code):
    if isinstance(failure, TypeError) and "ToolResult" in message:
        return "a wrapper returns a ToolResult: its plain value is in `.data`"
    return ""


def _positional(failure, message, namespace, code):
    if isinstance(failure, TypeError) and "takes from 0 to 1 positional arguments" in message:
        return 'a wrapper takes one dict, or keywords: f({"name": value}) or f(name=value)'
    return ""


def _tool_error(failure, message, namespace, code):
    if not isinstance(failure, ToolError):
        return ""
    if failure.type == "ValidationError" and ("null" in message or "None" in message):
        return "leave an argument out in place of None"
    if failure.type == "UnknownTool":
        from airlock_guest.hints_names import tool_named

        return tool_named(message)
    return ""


ADVISERS = (
    _tool_error,
    _forgotten_await,
    _awaited_twice,
    _gather,
    _asynchronous,
    _function,
    _running_loop,
    _parsed_already,
    _not_json,
    _needs_data,
    _text_as_object,
    _attribute_of_data,
    _missing_key,
    _positional,
    _standard,
)
