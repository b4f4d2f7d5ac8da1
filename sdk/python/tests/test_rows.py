"""Every requirement has a test that names it, or is in the ledger with a reason."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
ROWS = [f"Q-{n:03}" for n in range(1, 146)] + [f"P-{n:03}" for n in range(1, 45)] + [
    f"K-{n:03}" for n in range(6, 10)] + ["A-062", "A-063"]
AGENTS = [f"A-{n:03}" for n in range(1, 65)]  # the service has most tests; some rows are tested through the clients too
_MARK = re.compile(r"\brow\(([^)]*)\)")
_RANGE = re.compile(r'"([QPKA])-(\d{3})(?:\.\.(\d{3}))?"')

_GO = re.compile(r"\bQ-(\d{3})(?: to Q-(\d{3}))?")


def named() -> set[str]:
    """The rows that markers of tests name, ranges as "Q-081..088" included."""
    found: set[str] = set()
    for path in TESTS.glob("test_*.py"):
        if path.name == "test_rows.py":
            continue
        for mark in _MARK.finditer(path.read_text()):
            for letter, first, last in _RANGE.findall(mark[1]):
                found.update(f"{letter}-{n:03}" for n in range(int(first), int(last or first) + 1))
    return found


def named_in_go() -> set[str]:
    """The rows that tests of the faces, the gateway and the jobs name: comments such as `Q-018 to Q-022`."""
    found: set[str] = set()
    for place in ("cmd/qwed-mcp", "verify/gateway", "app/server/gateway", "app/runs", "app/bom"):
        for path in (TESTS.parents[2] / place).glob("*_test.go"):
            for first, last in _GO.findall(path.read_text()):
                found.update(f"Q-{n:03}" for n in range(int(first), int(last or first) + 1))
    return found


def ledger() -> dict[str, str]:
    """The rows without a test, with the reason."""
    lines = (TESTS / "rows_missing.txt").read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))


def test_every_row_is_tested_or_says_why_not() -> None:
    tested = named() | named_in_go()
    missing = [row for row in ROWS if row not in tested and row not in ledger()]
    assert not missing, "name these in a test, or say in rows_missing.txt why there is none"


def test_the_ledger_is_not_stale() -> None:
    tested = named() | named_in_go()
    stale = [row for row in ledger() if row in tested or row not in ROWS]
    assert not stale, "these have a test now, or are no rows: remove them from rows_missing.txt"
    assert all(reason.strip() for reason in ledger().values())


def test_tests_name_rows_that_exist() -> None:
    assert named() <= {*ROWS, *AGENTS}
