"""Fixtures that the tests share, and the option that runs a part of them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

_WHOLE = 200  # a file with fewer tests stays in one part, because its tests may share a server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="1/1", help="run one part of the tests: 2/4 is the second of four")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part, parts = (int(n) for n in config.getoption("--part").split("/"))
    sizes = Counter(item.path for item in items)
    files = {path: n for n, path in enumerate(sorted(p for p in sizes if sizes[p] < _WHOLE))}
    mine = [files.get(item.path, n) % parts == part - 1 for n, item in enumerate(items)]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, mine, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, mine, strict=True) if kept]
