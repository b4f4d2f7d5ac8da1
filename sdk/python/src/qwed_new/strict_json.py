"""The one reader of JSON that comes from outside."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 500

_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def loads(text: str | bytes | bytearray, *, parse_float: Callable[[str], Any] | None = None) -> Any:
    """Return the value of one JSON text; ValueError if two readers could disagree about it.

    A repeated member name, NaN and Infinity, a number that no float holds, half of a surrogate pair,
    bytes that are not UTF-8, text after the value and more than MAX_DEPTH levels are errors.
    parse_float reads numbers with a fraction or an exponent; the default is float.
    """
    if not isinstance(text, str):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"byte {error.start + 1} is not UTF-8") from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=parse_float or _float, parse_constant=_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _SURROGATE.search(text) or not _is_unicode(text):
        _check_strings(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the member {twice!r} is given twice")
    return members


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _check_depth(text: str) -> None:
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += bracket.lastindex == 1
        depth -= bracket.lastindex == 2
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")


def _check_strings(value: Any) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str) and not _is_unicode(item):
            raise ValueError("a string has half of a surrogate pair")
        if isinstance(item, dict):
            stack += item
            stack += item.values()
        elif isinstance(item, list):
            stack += item


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
