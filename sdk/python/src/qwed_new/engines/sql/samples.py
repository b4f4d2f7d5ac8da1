"""Conditions that hold for every sample row: a search for always-true operands that Z3 cannot translate.

The condition is executed in SQLite on rows made for it: the extremes of each type, common values, and values around
the constants of the condition itself. One row for which it is false acquits it. A condition with a function that
SQLite lacks is not executed, so that nothing is known about it.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from qwed_new.engines.sql.sample_functions import FUNCTIONS
from qwed_new.engines.sql.sorts import Sorts, is_free, of_clock

ROWS = 600
_MAX_COLUMNS = 6
_MAX_STEPS = 20_000  # of SQLite, in thousands of instructions
_FEWEST = 5  # rows that a condition must be computed for
_PAD = 12  # characters before a constant, for conditions on a part of a text

_NUMBERS = [*range(-1, 11), 12, 37, 99, 100, 1000, 86_400, 10**6, -37, -1000]
_TEXTS = ["a", "Z", "0", "5", "x y", "zz9 -", "ä\n", "it's", "~~~~", "a+b", "a@b.c", "2024-02-29", "q" * 300]
_DATES = [
    "1969-12-31", "1970-01-01 00:00:00", "2000-01-01", "2024-02-29", "2038-01-19", "9999-12-31",
    *(f"20{i:02}-{i % 12 + 1:02}-{i % 31 + 1:02} {i % 24:02}:{i % 60:02}:{i % 60:02}" for i in range(60))]
_TODAY = "2026-07-01"
_FIRST_DATES = {"mysql": "1000-01-01"}  # of a dialect; of the others, the first day of year 1

_ANY_CASE = frozenset({"mysql", "tsql"})  # dialects that compare texts without regard to case and spaces at the end
_OF_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_AFFINITY = {"number": "NUMERIC", "text": "TEXT", "bool": "INTEGER", "order": "TEXT", "any": "BLOB"}


class _Unclear(ValueError):
    """A condition that is not executed."""


def always_true(
    condition: exp.Expression, sorts: Sorts, is_empty: Callable[[exp.Select], bool], dialect: str = "",
) -> bool | None:
    """Report whether a condition with columns is true for all sample rows that have NULL only in columns that it tests
    for NULL, and false for none; None if it cannot be executed.

    sorts are those of the condition's columns, and is_empty reports whether a subquery has no rows.
    """
    if dialect == "mysql" and condition.find(*_OF_BITS):  # with operands below zero, the two differ
        found = [_always_true(c, sorts, is_empty, dialect) for c in (condition.transform(_unsigned), condition)]
        return True if True in found else found[0]
    return _always_true(condition, sorts, is_empty, dialect)


def _always_true(
    condition: exp.Expression, sorts: Sorts, is_empty: Callable[[exp.Select], bool], dialect: str) -> bool | None:
    try:
        text, columns = _executable(condition, is_empty, dialect)
        constants = [n.this for n in condition.find_all(exp.Literal)]
        own = [_sort(c, sorts) for c in columns]
        pools = [
            _pool(s, sorts.limits(c), constants, dialect, sorts.is_day(c)) for s, c in zip(own, columns, strict=True)]
        pools = [[v for v in p if len(v) <= size] if s == "text" and (size := sorts.size(c)) is not None else p
            for p, s, c in zip(pools, own, columns, strict=True)]
        pools = [p if sorts.is_required(c) else [*p, None] for p, c in zip(pools, columns, strict=True)]
        tested = {c for test in condition.find_all(exp.Is) for c in test.find_all(exp.Column)}
        untested = [i for i, c in enumerate(columns) if c not in tested]
        return _holds(text, own or ["number"], pools or [[1]], untested, dialect)
    except (_Unclear, SqlglotError, sqlite3.Error, sqlite3.Warning, RecursionError, OverflowError):
        return None


def _sort(node: exp.Expression, sorts: Sorts) -> str:
    if isinstance(node, exp.Exists | exp.In | exp.MatchAgainst):
        return "bool"
    return sorts.sort(node) or ("number" if isinstance(node, exp.AggFunc | exp.Window) else "any")


def _executable(
    condition: exp.Expression, is_empty: Callable[[exp.Select], bool], dialect: str,
) -> tuple[str, list[exp.Expression]]:
    """Return a condition in SQLite's SQL, and its columns, parameters and free parts, which are called c0, c1, …"""
    columns: list[exp.Expression] = []
    found = condition.copy()
    if dialect in _ANY_CASE:
        found = found.transform(_in_any_case)
    if dialect == "mysql":
        found = found.transform(_first_byte)
    found = found.transform(lambda n: _simpler(n, is_empty))

    def named(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column | exp.Placeholder | exp.Parameter) and not is_free(node):
            return node
        if node not in columns:
            columns.append(node)
        return exp.column(f"c{columns.index(node)}")

    found = found.transform(named)
    if found.find(exp.Table, exp.Star):
        raise _Unclear("a table")
    text = found.sql(dialect="sqlite")
    if len(columns) > _MAX_COLUMNS:
        raise _Unclear("many columns")
    return text, columns


def _simpler(node: exp.Expression, is_empty: Callable[[exp.Select], bool]) -> exp.Expression:
    """Return a node in terms that SQLite has."""
    if isinstance(node, exp.Select) and is_empty(node):
        return exp.select(exp.Null()).where(exp.false())
    if isinstance(node, exp.Cast) and node.to.sql().upper().split("(")[0] in (
        "DATE", "TIMESTAMP", "TIMESTAMPTZ", "DATETIME", "BINARY", "VARBINARY", "BYTEA"):
        return node.this.transform(lambda n: _simpler(n, is_empty))
    if isinstance(node, exp.Sub) and of_clock(node.left) != of_clock(node.right) and node.find(exp.Column):
        return _days(node.left, node.right)
    if isinstance(node, exp.DateDiff | exp.TimestampDiff):
        return _days(node.this, node.expression)
    if isinstance(node, exp.Overlay):
        return _overlaid(node)
    if isinstance(node, exp.SimilarTo) and isinstance(node.expression, exp.Literal):
        return exp.RegexpLike(this=node.this, expression=exp.Literal.string(
            "^(?:" + node.expression.name.replace("%", ".*").replace("_", ".") + ")$"))
    if isinstance(node, exp.TimeToStr) and "%" not in node.text("format"):  # of a number, as in to_char(1, '999')
        raise _Unclear(node.sql())
    if isinstance(node, exp.BitwiseXor):
        return exp.paren(exp.Sub(this=exp.paren(exp.BitwiseOr(this=node.left, expression=node.right)),
            expression=exp.paren(exp.BitwiseAnd(this=node.left, expression=node.right))))
    if isinstance(node, exp.Xor):
        return exp.NEQ(this=exp.paren(exp.Not(this=exp.paren(node.left))), expression=exp.paren(
            exp.Not(this=exp.paren(node.right))))
    if isinstance(node, exp.Extract):
        return exp.Anonymous(this="DATE_PART", expressions=[exp.Literal.string(node.this.name), node.expression])
    if isinstance(node, exp.Year | exp.Month | exp.Day):
        return exp.Anonymous(this="DATE_PART", expressions=[exp.Literal.string(node.key), node.this])
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        unit = exp.Literal.string(str(node.args["unit"].name))
        return exp.Anonymous(this="DATE_TRUNC", expressions=[unit, node.this])
    if isinstance(node, exp.ArrayContainsAll | exp.ArrayOverlaps | exp.Overlaps | exp.Match):
        if node.left == node.right:
            return exp.true()
    if isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE) and isinstance(
        node.right, exp.Any | exp.All | exp.Anonymous):
        return _each(node, is_empty)
    return node


def _unsigned(node: exp.Expression) -> exp.Expression:
    """Return an operation on bits of MySQL, whose result is never negative. The operations within it are those of
    SQLite, which have the same bits."""
    if isinstance(node, exp.BitwiseRightShift):
        node = exp.Anonymous(this="SHIFTED", expressions=[node.left, node.right])
    elif not isinstance(node, _OF_BITS):
        return node
    outer = node.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    is_shifted = isinstance(outer, exp.Anonymous) and outer.this == "SHIFTED"
    if is_shifted or isinstance(outer, (*_OF_BITS, exp.BitwiseCount)):
        return node
    return exp.Anonymous(this="UNSIGNED", expressions=[node.copy()])


def _first_byte(node: exp.Expression) -> exp.Expression:
    """Return ASCII of MySQL, which is about the first byte of a text."""
    return exp.Anonymous(this="FIRST_BYTE", expressions=[node.this]) if isinstance(node, exp.Ascii) else node


def _in_any_case(node: exp.Expression) -> exp.Expression:
    """Return a comparison of computed texts that ignores case."""
    compares = isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE)
    if compares and isinstance(node.left, exp.Func | exp.DPipe | exp.Literal) and not node.find(exp.Cast, exp.Collate):
        node.set("this", exp.Collate(this=exp.paren(node.left.copy()), expression=exp.to_identifier("ANY_CASE")))
    return node


def _each(node: exp.Expression, is_empty: Callable[[exp.Select], bool]) -> exp.Expression:
    """Return a comparison with ANY or ALL of an array as comparisons, and with all rows of an empty query as true."""
    is_all = not isinstance(node.right, exp.Any)
    if isinstance(node.right, exp.Anonymous):
        if str(node.right.this).upper() != "ALL" or len(node.right.expressions) != 1:
            return node
        values = node.right.expressions[0].unnest()
    else:
        values = node.right.this.unnest()
    if isinstance(values, exp.Placeholder | exp.Parameter):
        return type(node)(this=node.left, expression=values)
    if isinstance(values, exp.Select) and is_all and is_empty(values):
        return exp.true()
    if not isinstance(values, exp.Array) or not values.expressions:
        raise _Unclear(node.sql())
    parts = [type(node)(this=node.left.copy(), expression=v.copy()) for v in values.expressions]
    return exp.paren(exp.and_(*parts) if is_all else exp.or_(*parts))


def _days(later: exp.Expression, earlier: exp.Expression) -> exp.Expression:
    """Return the days between two dates. Samples use days for every unit of time."""
    return exp.paren(exp.Sub(this=_julian(later), expression=_julian(earlier)))


def _julian(node: exp.Expression) -> exp.Expression:
    day = exp.Literal.string(_TODAY) if of_clock(node) else node.copy()
    return exp.Anonymous(this="JULIANDAY", expressions=[day])


def _overlaid(node: exp.Overlay) -> exp.Expression:
    """Return OVERLAY as the text before, the new text and the text behind."""
    start = node.args["from_"]
    size = node.args.get("for_") or exp.Length(this=node.expression.copy())
    before = exp.Substring(this=node.this.copy(), start=exp.Literal.number(1), length=exp.Sub(
        this=start.copy(), expression=exp.Literal.number(1)))
    behind = exp.Substring(this=node.this.copy(), start=exp.Add(this=start.copy(), expression=exp.paren(size.copy())))
    return exp.paren(exp.DPipe(this=exp.DPipe(this=before, expression=node.expression.copy()), expression=behind))


def _pool(sort: str, limits: list[Any], constants: list[str], dialect: str, only_dates: bool = False) -> list[Any]:
    """Return the values of a column: those that every column of its sort has, and some around the constants."""
    numbers = [n for c in constants if (n := _number(c)) is not None]
    if sort == "bool":
        return [0, 1]
    if sort == "any":
        return [v for s in ("number", "text", "order") for v in _pool(s, [], constants, dialect)]
    if sort == "number":
        near = [v for n in numbers for v in (n, n + 1, n - 1, -n, 2 * n, n / 2)]
        pool = [*limits, *near, *_NUMBERS] if limits else [*near, *_NUMBERS, -(2**62), 2**62, 0.5, -2.25]
        if not limits:
            return pool
        is_whole = isinstance(limits[0], int)
        within = [n for n in pool if limits[0] <= n <= limits[1]]
        return [n for n in within if n == int(n)] if is_whole else [float(n) for n in within]
    if sort == "order":
        dates = [c for c in constants if re.match(r"\d{4}-\d\d-\d\d", c)]
        first = _FIRST_DATES.get(dialect, "0001-01-01")
        near = [d for c in dates for d in (c, c[:9] + "0", c[:9] + "9") if _is_date(d)]
        years = [f"{int(n):04}-07-04" for n in numbers if 1 <= n <= 9999]
        pool = [first, *_DATES, *(d for d in near + years if d >= first)]
        return [d[:10] for d in pool] if only_dates else pool
    empty = [] if dialect == "oracle" else [""]  # an empty text of Oracle is NULL
    near_texts = [c.strip("%^$.*") for c in constants] + constants
    near_texts += [v for c in constants for k in range(1, _PAD) for v in (c[:k], c[k:], "." * k + c)]
    sized = ["x" * (int(n) + more) for n in numbers for more in (0, 1) if 0 < n <= 1_000 and n == int(n)]
    letters = [chr(int(n)) for n in numbers if 32 <= n < 0xD800]
    pool = [*_TEXTS, *near_texts, *(c + "x" for c in near_texts), *(c.upper() for c in near_texts), *sized, *letters]
    return empty + [text for text in pool if text]


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


def _holds(text: str, sorts: list[str], pools: list[list[Any]], required: list[int], dialect: str) -> bool | None:
    db = sqlite3.connect(":memory:")
    try:
        for name, size, function in FUNCTIONS:
            db.create_function(name, size, function, deterministic=True)
        db.execute("PRAGMA case_sensitive_like = ON")
        db.create_collation("ANY_CASE", _compare)
        collation = " COLLATE ANY_CASE" if dialect in _ANY_CASE else ""
        db.execute("CREATE TABLE t (" + ", ".join(f"c{i} {_AFFINITY[s]}{collation}" for i, s in enumerate(sorts)) + ")")
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(pools))})", _rows(pools))
        steps = iter(range(_MAX_STEPS))
        db.set_progress_handler(lambda: next(steps, None) is None, 1_000)
        known = " AND ".join(["1", *(f"c{i} IS NOT NULL" for i in required)])
        against = f"SELECT 1 FROM t WHERE (({text}) IS FALSE OR ({known} AND ({text}) IS NOT TRUE))"
        try:
            return db.execute(f"{against} LIMIT 1").fetchone() is None
        except sqlite3.OperationalError:  # for one row, such as a text that is not JSON
            return _holds_row_by_row(db, against)
    finally:
        db.close()


def _compare(a: str, b: str) -> int:
    a, b = a.casefold().rstrip(" "), b.casefold().rstrip(" ")
    return (a > b) - (a < b)


def _holds_row_by_row(db: sqlite3.Connection, against: str) -> bool | None:
    """Report whether a condition holds for the rows for which it can be computed; None if these are few."""
    computed = 0
    for (row,) in db.execute("SELECT rowid FROM t").fetchall():
        try:
            if db.execute(f"{against} AND rowid = ?", [row]).fetchone():
                return False
            computed += 1
        except sqlite3.OperationalError:
            continue
    return True if computed >= _FEWEST else None


def _rows(pools: list[list[Any]]) -> Iterable[list[Any]]:
    """Return rows of the pools: each value at least once, equal values side by side, and random ones."""
    dice = random.Random(26)
    for i in range(max(map(len, pools))):
        yield [p[i % len(p)] for p in pools]
    for _ in range(ROWS if len(pools) > 1 else 0):
        yield [None if p[-1] is None and dice.random() < 0.05 else dice.choice(p) for p in pools]


def _number(text: str) -> float | int | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not abs(number) < 2**62:
        return None
    return int(number) if number == int(number) else number
