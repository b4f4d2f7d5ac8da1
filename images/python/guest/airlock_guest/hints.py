"""Says how to repair code that failed for a reason that is common in here."""

import sys
from difflib import get_close_matches

from airlock_guest.execute import NAME

_WRAPPERS = "servers"
_JSON_WORDS = {"true": "True", "false": "False", "null": "None"}


def hint(failure, message, namespace):
    """Return advice on an exception that reached the top of the code, or ""."""
    for advise in (_forgotten_await, _wrong_name, _running_loop, _missing_module, _no_stdin, _no_network, _needs_data):
        advice = advise(failure, message, namespace)
        if advice:
            return advice
    return ""


def _forgotten_await(failure, message, namespace):
    if not isinstance(failure, (TypeError, AttributeError)) or "coroutine" not in message:
        return ""
    for value in _values_in_reach(failure, namespace):
        if type(value).__name__ == "coroutine" and value.cr_frame is not None:
            call = f"{value.__name__}(...)"
            return f"{call} was never awaited: write `await {call}`"
    return "a call was never awaited: write `await` before it"


def _values_in_reach(failure, namespace):
    """Yield what the failing line may have meant: the object itself, locals, globals."""
    yield getattr(failure, "obj", None)
    for frame in reversed(_frames(failure)):
        if frame.f_code.co_filename == NAME:
            yield from list(frame.f_locals.values())
    yield from list(namespace.values())


def _frames(failure):
    frames, at = [], failure.__traceback__
    while at is not None and len(frames) < 1000:
        frames.append(at.tb_frame)
        at = at.tb_next
    return frames


def _wrong_name(failure, message, namespace):
    """Suggest the nearest name for a wrapper, module or variable that does not exist."""
    if isinstance(failure, AttributeError):
        module = getattr(failure, "obj", None)
        if isinstance(module, type(sys)) and _is_ours(module.__name__):
            return _nearest(failure.name, _public(module), module.__name__)
    elif isinstance(failure, NameError):
        if failure.name in _JSON_WORDS:
            return f"write {_JSON_WORDS[failure.name]}"
        frame = _frames(failure)[-1]
        known = [*frame.f_locals, *frame.f_globals, *vars(sys.modules["builtins"])]
        return _nearest(failure.name, known, "the code")
    elif isinstance(failure, ImportError) and failure.name and not isinstance(failure, ModuleNotFoundError):
        module = sys.modules.get(failure.name)
        if module is not None and _is_ours(failure.name):
            wanted = message.partition("cannot import name '")[2].partition("'")[0]
            return _nearest(wanted, _public(module), failure.name)
    return ""


def _is_ours(module):
    return module.partition(".")[0] in (_WRAPPERS, "client")


def _public(module):
    names = getattr(module, "__all__", None) or dir(module)
    return [name for name in names if isinstance(name, str) and not name.startswith("_")]


def _nearest(name, known, place):
    known = sorted({candidate for candidate in known if isinstance(candidate, str) and candidate != name})
    nearest = get_close_matches(name, known, n=3, cutoff=0.6)
    if nearest:
        return f"did you mean {' or '.join(nearest)}?"
    if place == "the code" or not known:
        return ""
    shown = ", ".join(known[:20])
    return f"{place} has: {shown}" + (f" and {len(known) - 20} more" if len(known) > 20 else "")


def _running_loop(failure, message, namespace):
    if isinstance(failure, RuntimeError) and (
        "asyncio.run() cannot be called from a running event loop" in message
        or "This event loop is already running" in message
    ):
        return "the code has a top-level await, so a loop is running: write `await main()` instead"
    return ""


def _missing_module(failure, message, namespace):
    if not isinstance(failure, ModuleNotFoundError) or not failure.name:
        return ""
    package, _, module = failure.name.partition(".")
    if package == _WRAPPERS and module:
        return _nearest(module, _public(sys.modules[_WRAPPERS]), _WRAPPERS)
    if package in (_WRAPPERS, "client") or package in sys.stdlib_module_names:
        return ""
    return "only the standard library and the wrappers in `servers` are installed"


def _no_stdin(failure, message, namespace):
    if isinstance(failure, EOFError) and "EOF when reading a line" in message:
        return "stdin is empty in here: put the values into the code"
    return ""


def _no_network(failure, message, namespace):
    if type(failure).__name__ in ("gaierror", "URLError") or (
        isinstance(failure, OSError) and failure.errno in (101, 113)  # ENETUNREACH, EHOSTUNREACH
    ):
        return "the sandbox has no network: call tools through the wrappers in `servers`"
    return ""


def _needs_data(failure, message, namespace):
    if isinstance(failure, TypeError) and "ToolResult" in message:
        return "a wrapper returns a ToolResult: its plain value is in `.data`"
    return ""
