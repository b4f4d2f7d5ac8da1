"""Describes an exception of the code: its type, its message, the traceback, what to do.

Loaded when code has failed, or ahead of time. Every part of an exception may be
hostile: its `__str__` may raise, its chain may be endless, its text huge.
"""

import sys
import traceback
from posix import write

from airlock_guest.disk import is_disk_full
from airlock_guest.execute import NAME
from client.result import ToolError

_MAX_MESSAGE = 4 << 10  # bytes
_MAX_TRACEBACK = 8 << 10  # bytes
_MAX_PRINTED = 64 << 10  # bytes of the traceback that goes to stderr
_MOST_FRAMES = 5_000
_WORKSPACE = sys.modules["client"].__path__[0].rpartition("/")[0]
_OURS = (__file__.rpartition("/")[0] + "/", _WORKSPACE + "/client/", _WORKSPACE + "/servers/")
_STANDARD = traceback.__file__.rpartition("/")[0] + "/"

_name_of = type.__dict__["__name__"].__get__


def describe(failure, namespace, code):
    """Return the `error` of `run/finish` for an exception, and print its traceback to stderr.

    `namespace` holds the code's globals, `code` is its text.
    """
    text = _traceback(failure)
    print_error(_cut(text, _MAX_PRINTED))
    message = message_of(failure)
    advice = _advice(failure, message, namespace, code)
    error = {
        "type": _guarded(_limit_of, failure, message) or _name_of(type(failure)),
        "message": _cut(message, _MAX_MESSAGE - len(advice.encode())) + advice,
        "traceback": _cut(text, _MAX_TRACEBACK),
        "retryable": False,
        "source": "code",
    }
    if isinstance(failure, ToolError):
        error |= _tool_failure(failure)
    elif isinstance(failure, BaseExceptionGroup):
        leaves = list(_leaves(failure))
        error["retryable"] = all(isinstance(leaf, ToolError) and leaf.retryable is True for leaf in leaves)
    return error


def _limit_of(failure, message):
    """Return the error type of a limit that the code has run into, or ""."""
    if is_disk_full(failure):
        return "DiskLimit"
    if isinstance(
        failure, BlockingIOError) and "Resource temporarily unavailable" in message and _STANDARD in _innermost(
            failure):
        return "ProcessLimit"
    return "ProcessLimit" if isinstance(failure, RuntimeError) and message == "can't start new thread" else ""


def _innermost(failure):
    """Return the file that a failure was raised in."""
    at = failure.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at.tb_frame.f_code.co_filename if at is not None else ""


def message_of(value):
    """Return the text of an exception or of sys.exit's argument; it never raises."""
    try:
        text = str(value)
        if isinstance(value, BaseExceptionGroup):
            text += "".join(f"; {_name_of(type(leaf))}: {leaf}" for leaf in list(_leaves(value))[:5])
        text += "".join(f"; {note}" for note in getattr(value, "__notes__", [])[:5])
    except BaseException as broken:
        text = f"(the message cannot be shown: reading it raised {_name_of(type(broken))})"
    return str.__str__(text)


def print_error(text):
    """Write to the real stderr, even if the code has replaced sys.stderr."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        while data:
            data = data[write(2, data) :]
    except OSError:  # the code has closed it
        return


def _tool_failure(failure):
    """Return the broker's error; code that tampered with the fields affects only itself."""
    fields = {"type": str(failure.type), "retryable": failure.retryable is True, "source": str(failure.source)}
    if failure.call_id is not None:
        fields["call_id"] = str(failure.call_id)
    return fields


def _guarded(function, *arguments):
    """Return a function's description of a failure, or "" if the failure prevents it."""
    try:
        return function(*arguments)
    except BaseException:  # nothing is worth losing the failure for
        return ""


def _hint(failure, message, namespace, code):
    from airlock_guest.hints import hint  # takes memory in every waiting sandbox if it is loaded ahead

    return hint(failure, message, namespace, code)


def _advice(failure, message, namespace, code):
    advice = _guarded(_hint, failure, message, namespace, code)
    return f" ({_cut(advice, _MAX_MESSAGE // 2)})" if advice else ""


def _leaves(group):
    stack = [group]
    for _ in range(10_000):
        if not stack:
            return
        failure = stack.pop()
        if isinstance(failure, BaseExceptionGroup):
            stack.extend(reversed(failure.exceptions))
        else:
            yield failure


def _traceback(failure):
    """Return the traceback without frames of the guest, the client and the wrappers."""
    try:
        trace = traceback.TracebackException(
            type(failure), failure, failure.__traceback__, limit=_limit(failure), compact=True)
        _drop_our_frames(trace)
        return "".join(trace.format())
    except BaseException as broken:
        return f"{_name_of(type(failure))} (no traceback: formatting it raised {_name_of(type(broken))})\n"


def _limit(failure):
    """Return None for a traceback of bearable length, else how many frames to keep."""
    frame = failure.__traceback__
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        frame = frame.tb_next
    return -100


def _drop_our_frames(trace):
    seen, todo = set(), [trace]
    while todo:
        part = todo.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        # asyncio's frames report nothing about a failure inside a tool.
        hidden = (*_OURS, _STANDARD) if part.exc_type is ToolError else _OURS
        part.stack[:] = [frame for frame in part.stack if not frame.filename.startswith(hidden)]
        todo += [part.__cause__, part.__context__, *(part.exceptions or ())]
    _drop_lead(trace.stack)


def _drop_lead(stack):
    """Drop what runs above the code: asyncio's frames when there is a top-level await."""
    for i, frame in enumerate(stack):
        if frame.filename == NAME:
            del stack[:i]
            return


def _cut(text, limit):
    """Shorten text to about `limit` bytes of UTF-8 by taking out its middle."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    half = max(limit // 2 - 30, 0)
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    return f"{head}\n[... {len(data) - 2 * half} bytes cut ...]\n{tail}"
