"""Time limits for computations that may never end."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc


class TimeLimit(BaseException):
    """Raised inside a computation whose time is over.

    It is no Exception, so that libraries which catch those do not swallow it.
    """


class TooLarge(ValueError):
    """The input, or a number that it would make, is beyond a stated limit."""


class time_limit:
    """Run a block for at most `seconds` and raise TimeLimit inside it after that.

    It works in any thread, for Python code; one call into C is not interrupted, so numbers
    are bounded before they are computed and solvers are given a time limit of their own.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._wait, daemon=True)

    def __enter__(self) -> time_limit:
        self._watch.start()
        return self

    def _wait(self) -> None:
        delay = self._seconds
        # Again and again: an exception raised in a finalizer is only printed.
        while not self._over.wait(delay):
            with self._lock:
                if self._over.is_set():
                    return
                _raise_in(ctypes.c_ulong(self._thread), ctypes.py_object(TimeLimit))
            delay = 0.25

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        while not self._over.is_set():
            try:
                with self._lock:
                    self._over.set()
                    _raise_in(ctypes.c_ulong(self._thread), None)
            except TimeLimit:
                continue


def within(seconds: float, compute: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What compute returns, or None when its time was over."""
    try:
        with time_limit(seconds):
            return compute(*args, **kwargs)
    except TimeLimit:
        return None


def bounded_text(value: Any, name: str, limit: int) -> str:
    """value, if it is a text of at most `limit` characters without NUL; ValueError or TooLarge otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    if len(value) > limit:
        raise TooLarge(f"{name} has {len(value)} characters, more than {limit}")
    if "\0" in value:
        raise ValueError(f"{name} contains a NUL character")
    return value
