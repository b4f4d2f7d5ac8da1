"""Functions of other databases, for the conditions that are executed in SQLite on sample rows."""

from __future__ import annotations

import calendar
import difflib
import hashlib
import math
import re
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

_PARTS = {"year": (0, 4), "month": (5, 7), "day": (8, 10), "hour": (11, 13), "minute": (14, 16), "second": (17, 19)}
_DAYS: dict[str, Callable[[date], int]] = {
    "dow": lambda d: d.isoweekday() % 7, "dayofweek": lambda d: d.isoweekday() % 7 + 1, "isodow": date.isoweekday,
    "doy": lambda d: d.timetuple().tm_yday, "dayofyear": lambda d: d.timetuple().tm_yday,
    "quarter": lambda d: (d.month + 2) // 3, "week": lambda d: d.isocalendar().week,
    "isoyear": lambda d: d.isocalendar().year, "decade": lambda d: d.year // 10,
    "century": lambda d: (d.year + 99) // 100,
}


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


def _part(part: str, value: str | None) -> int | None:
    if value is None:
        return None
    part, text = part.lower(), str(value)
    if part in _PARTS:
        start, end = _PARTS[part]
        return int(text[start:end] or 0)
    return _DAYS[part](date.fromisoformat(text[:10]))


def _of_time(part: str) -> Callable[..., Any]:
    return lambda value: _part(part, value)


def _trunc(unit: str, value: str | None) -> str | None:
    return value if value is None else str(value)[: _PARTS[unit.lower()][1]] + {"year": "-01-01", "month": "-01"}.get(
        unit.lower(), "")


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _whole(value: Any) -> int:
    """The number that the operators of bits see, in 64 bits with a sign."""
    number = round(value) if isinstance(value, int | float) else 0
    return (number + 2**63) % 2**64 - 2**63


def _unsigned(value: Any) -> int | float:
    number = _whole(value) % 2**64
    return number if number < 2**63 else float(number)  # SQLite has no whole numbers above


def _last_day(text: str) -> str:
    day = date.fromisoformat(text[:10])
    return day.replace(day=calendar.monthrange(day.year, day.month)[1]).isoformat()


def _seconds(text: str) -> int:
    whole = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return max(int(whole.timestamp()), 0)


def _is_numeric(text: Any) -> int:
    try:
        float(text)
    except ValueError:
        return 0
    return 1


def _digest(name: str) -> Callable[..., Any]:
    return _or_null(lambda text: hashlib.new(name, str(text).encode(), usedforsecurity=False).hexdigest())


def _or_null(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: None if None in values else function(*values)


def _position(value: Any, values: list[str]) -> int:
    """Return the position of a value, counted from 1, or 0."""
    return values.index(str(value)) + 1 if str(value) in values else 0


# Functions that SQLite lacks: name, number of parameters, and the function.
FUNCTIONS: tuple[tuple[str, int, Callable[..., Any]], ...] = (
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
    ("FIND_IN_SET", 2, _or_null(lambda t, all_: _position(t, str(all_).split(",")))),
    ("PATINDEX", 2, _or_null(lambda pattern, t: _index_of(str(pattern), str(t)))),
    ("CHARINDEX", 2, _or_null(lambda part, t: str(t).find(str(part)) + 1)),
    ("LOCATE", 2, _or_null(lambda part, t: str(t).find(str(part)) + 1)),
    ("MD5", 1, _digest("md5")), ("SHA", 1, _digest("sha1")), ("SHA2", 2, lambda t, bits: _digest("sha256")(t)),
    ("UNSIGNED", 1, _or_null(_unsigned)),
    ("SHIFTED", 2, _or_null(lambda a, n: _whole(_whole(a) % 2**64 >> min(max(_whole(n), 0), 64)))),
    ("BITAND", 2, _or_null(lambda a, b: _whole(a) & _whole(b))),
    ("BITWISE_COUNT", 1, _or_null(lambda a: (_whole(a) % 2**64).bit_count())),
    ("CRC32", 1, _or_null(lambda t: _checksum(str(t)))),
    ("FIRST_BYTE", 1, _or_null(lambda t: (str(t).encode() or b"\0")[0])),
    ("ORD", 1, _or_null(lambda t: int.from_bytes(str(t)[:1].encode(), "big"))),
    ("FIELD", -1, lambda t, *all_: 0 if t is None else _position(t, [str(a) for a in all_])),
    ("ELT", -1, lambda n, *all_: all_[int(n) - 1] if n is not None and 1 <= int(n) <= len(all_) else None),
    ("ISNUMERIC", 1, lambda t: 0 if t is None else _is_numeric(t)),
    ("GCD", 2, _or_null(lambda a, b: math.gcd(int(a), int(b)))),
    ("DAY_OF_WEEK", 1, _or_null(lambda d: _part("dow", d) + 1)), ("DAY_OF_YEAR", 1, _of_time("doy")),
    ("WEEKDAY", 1, _or_null(lambda d: _part("isodow", d) - 1)), ("WEEK", 1, _of_time("week")),
    ("QUARTER", 1, _of_time("quarter")), ("HOUR", 1, _of_time("hour")), ("MINUTE", 1, _of_time("minute")),
    ("SECOND", 1, _of_time("second")), ("LAST_DAY", 1, _or_null(lambda d: _last_day(str(d)))),
    ("UNIX_TIMESTAMP", 1, _or_null(lambda d: _seconds(str(d)))),
    ("INITCAP", 1, _or_null(lambda t: str(t).title())),
    ("LPAD", 3, _or_null(lambda t, n, fill: str(t)[: max(int(n), 0)].rjust(min(int(n), 1_000), str(fill)[:1] or " "))),
    ("RPAD", 3, _or_null(lambda t, n, fill: str(t)[: max(int(n), 0)].ljust(min(int(n), 1_000), str(fill)[:1] or " "))),
    ("TRANSLATE", 3, _or_null(
        lambda t, old, new: str(t).translate({ord(c): str(new)[i : i + 1] for i, c in enumerate(str(old))}))),
    ("SPLIT_PART", 3, _or_null(
        lambda t, by, n: [*str(t).split(str(by) or None), *[""] * 100][min(max(int(n), 1), 100) - 1])),
    ("CONCAT_WS", -1, lambda by, *values:
        None if by is None else str(by).join(str(v) for v in values if v is not None)),
    ("CONCAT", -1, lambda *values: "".join(str(v) for v in values if v is not None)),
    ("STUFF", 4, _or_null(
        lambda t, start, n, new: str(t)[: int(start) - 1] + str(new) + str(t)[int(start) - 1 + int(n) :])),
    ("REGEXP_REPLACE", -1, _or_null(
        lambda t, pattern, new="", *flags: _replaced(str(t), str(pattern), str(new), *flags))),
    ("SIMILARITY", 2, _or_null(lambda a, b: difflib.SequenceMatcher(None, str(a)[:50], str(b)[:50]).ratio())),
    ("CBRT", 1, _or_null(lambda a: math.copysign(abs(a) ** (1 / 3), a))),
    ("AGE", 2, _or_null(lambda a, b: "0" if a == b else "1")),
    ("NUM_NULLS", -1, lambda *values: values.count(None)),
    ("NUM_NONNULLS", -1, lambda *values: len(values) - values.count(None)),
    ("POWER", 2, _or_null(lambda a, b: 1 if a == 1 else a**b if abs(a) < 10**6 and 0 <= b < 9 else None)),
)  # fmt: skip
