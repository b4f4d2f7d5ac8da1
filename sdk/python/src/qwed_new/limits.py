"""Time limits for computations that may never end."""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


class TimeLimit(BaseException):
    """Raised inside a computation whose time is over.

    It is no Exception, so that libraries which catch those do not swallow it.
    """


class NotText(ValueError):
    """The input is not a text that can be read; the message contains what to write."""


class TooLarge(ValueError):
    """The input, or a number that it would make, is beyond a stated limit."""


AGAIN = 0.25  # seconds after which TimeLimit is raised again in a computation that continues


def limited(seconds: float, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of compute. If it takes longer than `seconds`, TimeLimit is raised inside it.

    It works in any thread for Python code. A call into C is not interrupted, so numbers are bounded before they are
    computed, and solvers get a separate time limit. When limited returns, its thread has ended and nothing is raised
    later. It starts a new thread for each call, so that it works in a process that was restored from a checkpoint.
    """
    return _limited(type("TimeLimit", (TimeLimit,), {}), seconds, lambda: compute(*args, **kwargs))


def _limited(limit: type[TimeLimit], seconds: float, compute: Callable[[], T]) -> T:
    """Return the result of compute, or raise a limit of exactly this type when its time is over, so that limits
    nest."""
    running, watching = threading.Lock(), threading.Lock()
    try:
        # The locks are acquired and released by C code, which no exception from another thread interrupts: the end of
        # the computation cannot be missed. threading.Thread is not used, because its start waits until the new thread
        # runs. CPython gives a new thread the ident of its parent at first, so the TimeLimit of an enclosing limit can
        # end it there, and start waits for ever. Without its watch, the computation ends with the enclosing limit,
        # which is raised again.
        with running:
            _thread.start_new_thread(_watch, (threading.get_ident(), running, watching, seconds, limit))
            return compute()
    finally:
        _settle(watching)


def _watch(
    thread: int, running: threading.Lock, watching: threading.Lock, seconds: float, limit: type[TimeLimit]
) -> None:
    """Raise TimeLimit in a thread while the lock running is held after `seconds`: again and again, because finalizers
    swallow it."""
    with watching:
        while not running.acquire(timeout=seconds):
            _raise_in(ctypes.c_ulong(thread), ctypes.py_object(limit))
            seconds = AGAIN


def _settle(watching: threading.Lock) -> None:
    """Wait for the watch, and take back what it raised at the last moment; at most one TimeLimit can still arrive
    here. A watch that has not begun yet finds that the computation is over, and raises nothing."""
    for _ in range(2):
        try:
            with watching:
                pass
            _raise_in(ctypes.c_ulong(threading.get_ident()), None)
            return
        except TimeLimit:
            continue


def within(seconds: float, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return the result of compute, or None if it exceeds its time limit."""
    own = type("TimeLimit", (TimeLimit,), {})
    try:
        return _limited(own, seconds, lambda: compute(*args, **kwargs))
    except own:  # a TimeLimit of an enclosing limit propagates
        return None


def bounded_text(value: Any, name: str, limit: int) -> str:
    """Return value if it is a text of at most `limit` characters without NUL. Otherwise raise NotText or
    TooLarge."""
    if not isinstance(value, str):
        raise NotText(f"{name} is not a text: write it as a string")
    if len(value) > limit:
        raise TooLarge(f"{name} has {len(value)} characters, more than {limit}")
    if "\0" in value:
        raise NotText(f"{name} contains a NUL character: write it without U+0000")
    return value
