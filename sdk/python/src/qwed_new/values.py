"""The texts of nested data, read without recursion because what is nested is hostile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_KEYS = 1_000


def texts(items: Mapping[str, Any], leave_out: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """Each text with its path, at any depth, and the keys of each object below the top as one text (the first 1000);
    keys in leave_out are skipped at the top."""
    stack: list[tuple[str, Any]] = [(str(k), v) for k, v in reversed(list(items.items())) if k not in leave_out]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            yield path, " ".join(str(k) for k in list(value)[:MAX_KEYS])
            stack += [(f"{path}.{k}", v) for k, v in value.items()]
        elif isinstance(value, list | tuple):
            stack += [(f"{path}[{i}]", v) for i, v in enumerate(value)]
