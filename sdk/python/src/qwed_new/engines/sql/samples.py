"""Conditions that hold for every sample row: a search for always-true operands that Z3 cannot translate.

The condition is executed in SQLite on rows made for it: the extremes of each type, common values, and values around
the constants of the condition itself. One row for which it is false acquits it. A condition with a function that
SQLite lacks is not executed, so that nothing is known about it.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import random
import re
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from qwed_new.engines.sql.sorts import Sorts, is_free, of_clock

ROWS = 600
_MAX_COLUMNS = 6
_MAX_STEPS = 20_000  # of SQLite, in thousands of instructions
_FEWEST = 5  # rows that a condition must be computed for
_PAD = 12  # characters before a constant, for conditions on a part of a text

_NUMBERS = [*range(-1, 11), 12, 37, 99, 100, 1000, 86_400, 10**6, -37, -1000]
_TEXTS = ["", "a", "Z", "0", "5", "x y", "zz9 -", "ä\n", "it's", "~~~~", "a@b.c", "2024-02-29", "q" * 300]
_DATES = [
    "1969-12-31", "1970-01-01 00:00:00", "2000-01-01", "2024-02-29", "2038-01-19", "9999-12-31",
    *(f"20{i:02}-{i % 12 + 1:02}-{i % 31 + 1:02} {i % 24:02}:{i % 60:02}:{i % 60:02}" for i in range(60))]
_TODAY = "2026-07-01"
_FIRST_DATES = {"mysql": "1000-01-01"}  # of a dialect; of the others, the first day of year 1

_ANY_CASE = frozenset({"mysql", "tsql"})  # dialects that compare texts without regard to case and spaces at the end
_AFFINITY = {"number": "NUMERIC", "text": "TEXT", "bool": "INTEGER", "order": "TEXT", "any": "BLOB"}
_PARTS = {"year": (0, 4), "month": (5, 7), "day": (8, 10), "hour": (11, 13), "minute": (14, 16), "second": (17, 19)}


class _Unclear(ValueError):
    """A condition that is not executed."""


def always_true(
    condition: exp.Expression, sorts: Sorts, is_empty: Callable[[exp.Select], bool], dialect: str = "",
) -> bool | None:
    """Report whether a condition with columns is true for all sample rows that have NULL only in columns that it tests
    for NULL, and false for none; None if it cannot be executed.

    sorts are those of the condition's columns, and is_empty reports whether a subquery has no rows.
    """
    try:
        text, columns = _executable(condition, is_empty)
        constants = [n.this for n in condition.find_all(exp.Literal)]
        own = [_sort(c, sorts) for c in columns]
        pools = [_pool(s, sorts.limits(c), constants, dialect) for s, c in zip(own, columns, strict=True)]
        pools = [p if sorts.is_required(c) else [*p, None] for p, c in zip(pools, columns, strict=True)]
        tested = {c for test in condition.find_all(exp.Is) for c in test.find_all(exp.Column)}
        return _holds(text, own or ["number"], pools or [[1]], [i for i, c in enumerate(columns) if c not in tested], dialect)
    except (_Unclear, SqlglotError, sqlite3.Error, sqlite3.Warning, RecursionError, OverflowError):
        return None


def _sort(node: exp.Expression, sorts: Sorts) -> str:
    if isinstance(node, exp.Exists | exp.In | exp.MatchAgainst):
        return "bool"
    return sorts.sort(node) or ("number" if isinstance(node, exp.AggFunc | exp.Window) else "any")


def _executable(condition: exp.Expression, is_empty: Callable[[exp.Select], bool]) -> tuple[str, list[exp.Expression]]:
    """Return a condition in SQLite's SQL, and its columns, parameters and free parts, which are called c0, c1, …"""
    columns: list[exp.Expression] = []
    found = condition.copy().transform(lambda n: _simpler(n, is_empty))

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
    if isinstance(node, exp.MD5 | exp.SHA | exp.SHA2):
        return exp.Anonymous(this="DIGEST", expressions=[node.this])
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
        return exp.Anonymous(this="DATE_TRUNC", expressions=[exp.Literal.string(str(node.args["unit"].name)), node.this])
    if isinstance(node, exp.ArrayContainsAll | exp.ArrayOverlaps | exp.Overlaps | exp.Match) and node.left == node.right:
        return exp.true()
    if isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE) and isinstance(
        node.right, exp.Any | exp.All | exp.Anonymous):
        return _each(node, is_empty)
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
    """Return the days between two dates, which stand for any unit of time."""
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


def _pool(sort: str, limits: list[Any], constants: list[str], dialect: str) -> list[Any]:
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
        return [n if is_whole else float(n) for n in pool if limits[0] <= n <= limits[1] and (n == int(n) or not is_whole)]
    if sort == "order":
        dates = [c for c in constants if re.match(r"\d{4}-\d\d-\d\d", c)]
        first = _FIRST_DATES.get(dialect, "0001-01-01")
        near = [d for c in dates for d in (c, c[:9] + "0", c[:9] + "9")]
        years = [f"{int(n):04}-07-04" for n in numbers if 1 <= n <= 9999]
        return [first, *_DATES, *(d for d in near + years if d >= first)]
    near_texts = [c.strip("%^$.*") for c in constants] + constants
    near_texts += [v for c in constants for k in range(1, _PAD) for v in (c[:k], c[k:], "." * k + c)]
    sized = ["x" * int(n) for n in numbers if 0 < n <= 1_000 and n == int(n)]
    letters = [chr(int(n)) for n in numbers if 32 <= n < 0xD800]
    return [*_TEXTS, *near_texts, *(c + "x" for c in near_texts), *(c.upper() for c in near_texts), *sized, *letters]


def _holds(text: str, sorts: list[str], pools: list[list[Any]], required: list[int], dialect: str) -> bool | None:
    db = sqlite3.connect(":memory:")
    try:
        for name, size, function in _FUNCTIONS:
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


def _matches(pattern: str | None, text: str | None) -> bool | None:
    if pattern is None or text is None:
        return None
    if re.search(r"[)*+}][*+{]|\\\d", str(pattern)) or len(str(pattern)) > 200:
        raise ValueError("the pattern may take long")
    return bool(re.search(str(pattern), str(text)[:50]))


def _replaced(text: str, pattern: str, new: str, flags: str = "") -> str:
    _matches(pattern, "")  # refuses patterns that may take long
    return re.sub(pattern, lambda match: new, text[:50], count=0 if "g" in str(flags) else 1)


def _index_of(pattern: str, text: str) -> int:
    """The index of PATINDEX, which begins with 1."""
    start, end = pattern.startswith("%"), pattern.endswith("%")
    inner = re.escape(pattern.strip("%")).replace("%", ".*").replace("_", ".").replace(r"\[", "[").replace(r"\]", "]")
    found = re.search(("" if start else "^") + inner + ("" if end else "$"), text[:50], re.S)
    return found.start() + 1 if found else 0


def _part(part: str, date: str | None) -> int | None:
    if date is None:
        return None
    start, end = _PARTS[part.lower()]
    return int(str(date)[start:end] or 0)


def _trunc(unit: str, date: str | None) -> str | None:
    return date if date is None else str(date)[: _PARTS[unit.lower()][1]] + {"year": "-01-01", "month": "-01"}.get(
        unit.lower(), "")


def _or_null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if None in values else function(*values)


# Functions that SQLite lacks: name, number of parameters, and the function.
_FUNCTIONS: tuple[tuple[str, int, Callable[..., Any]], ...] = (
    ("REGEXP", 2, _matches),
    ("REGEXP_I_LIKE", 2, lambda text, pattern: _matches(None if pattern is None else f"(?i){pattern}", text)),
    ("DATE_PART", 2, _part),
    ("DATE_TRUNC", 2, _trunc),
    ("ASCII", 1, _or_null(lambda t: ord(str(t)[0]) if str(t) else 0)),
    ("OCTET_LENGTH", 1, _or_null(lambda t: len(str(t).encode()))),
    ("DATALENGTH", 1, _or_null(lambda t: len(str(t)))),
    ("BIT_LENGTH", 1, _or_null(lambda t: 8 * len(str(t).encode()))),
    ("STARTS_WITH", 2, _or_null(lambda text, part: str(text).startswith(str(part)))),
    ("LEFT", 2, _or_null(lambda text, n: str(text)[: max(int(n), 0)])),
    ("RIGHT", 2, _or_null(lambda text, n: str(text)[-int(n) :] if int(n) > 0 else "")),
    ("REVERSE", 1, _or_null(lambda t: str(t)[::-1])),
    ("REPEAT", 2, _or_null(lambda t, n: (str(t) * min(max(int(n), 0), 100))[:10_000])),
    ("STRCMP", 2, _or_null(lambda a, b: (str(a) > str(b)) - (str(a) < str(b)))),
    ("FIND_IN_SET", 2, _or_null(lambda t, all_: str(all_).split(",").index(str(t)) + 1 if str(t) in str(all_).split(",") else 0)),
    ("PATINDEX", 2, _or_null(lambda pattern, t: _index_of(str(pattern), str(t)))),
    ("CHARINDEX", 2, _or_null(lambda part, t: str(t).find(str(part)) + 1)),
    ("LOCATE", 2, _or_null(lambda part, t: str(t).find(str(part)) + 1)),
    ("DIGEST", 1, _or_null(lambda t: hashlib.sha256(str(t).encode()).hexdigest())),
    ("INITCAP", 1, _or_null(lambda t: str(t).title())),
    ("LPAD", 3, _or_null(lambda t, n, fill: str(t)[: max(int(n), 0)].rjust(min(int(n), 1_000), str(fill)[:1] or " "))),
    ("RPAD", 3, _or_null(lambda t, n, fill: str(t)[: max(int(n), 0)].ljust(min(int(n), 1_000), str(fill)[:1] or " "))),
    ("TRANSLATE", 3, _or_null(lambda t, old, new: str(t).translate({ord(c): str(new)[i : i + 1] for i, c in enumerate(str(old))}))),
    ("SPLIT_PART", 3, _or_null(lambda t, by, n: [*str(t).split(str(by) or None), *[""] * 100][min(max(int(n), 1), 100) - 1])),
    ("CONCAT_WS", -1, lambda by, *values: None if by is None else str(by).join(str(v) for v in values if v is not None)),
    ("CONCAT", -1, lambda *values: "".join(str(v) for v in values if v is not None)),
    ("STUFF", 4, _or_null(lambda t, start, n, new: str(t)[: int(start) - 1] + str(new) + str(t)[int(start) - 1 + int(n) :])),
    ("REGEXP_REPLACE", -1, _or_null(lambda t, pattern, new="", *flags: _replaced(str(t), str(pattern), str(new), *flags))),
    ("SIMILARITY", 2, _or_null(lambda a, b: difflib.SequenceMatcher(None, str(a)[:50], str(b)[:50]).ratio())),
    ("CBRT", 1, _or_null(lambda a: math.copysign(abs(a) ** (1 / 3), a))),
    ("AGE", 2, _or_null(lambda a, b: "0" if a == b else "1")),
    ("NUM_NULLS", -1, lambda *values: values.count(None)),
    ("NUM_NONNULLS", -1, lambda *values: len(values) - values.count(None)),
    ("POWER", 2, _or_null(lambda a, b: 1 if a == 1 else a**b if abs(a) < 10**6 and 0 <= b < 9 else None)),
)  # fmt: skip
