"""Dates and terms as contracts write them."""

from __future__ import annotations

import re
from datetime import date, datetime

_MONTHS = {
    m: i for i,
    m in enumerate("january february march april may june july august september october november december".split(), 1)}
_WORDS = {
    w: i for i,
    w in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split())} | {
    "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty-five": 45,
    "sixty": 60, "ninety": 90, "a": 1, "an": 1,
}  # fmt: skip


def read_date(text: object) -> date:
    """A date: YYYY-MM-DD, `15 January 2026` or `January 15, 2026`; ValueError otherwise, for 01/02/2026 too, which is
    ambiguous."""
    if isinstance(text, datetime):
        return text.date()
    if isinstance(text, date):
        return text
    if not isinstance(text, str):
        raise ValueError("a date is a text")
    value = text.strip()
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        return date.fromisoformat(value)
    if match := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?\s+([A-Za-z]+),?\s+(\d{4})", value, re.ASCII):
        return date(int(match[3]), _month(match[2]), int(match[1]))
    if match := re.fullmatch(r"([A-Za-z]+)\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})", value, re.ASCII):
        return date(int(match[3]), _month(match[1]), int(match[2]))
    raise ValueError(f"{value[:40]!r} is not a date that has one meaning; write YYYY-MM-DD")


def _month(name: str) -> int:
    found = [
        i for m, i in _MONTHS.items() if m == name.lower() or (len(name) >= 3 and m[:3] == name.lower().rstrip("."))]
    if not found:
        raise ValueError(f"{name!r} is not a month")
    return found[0]


def read_term(text: object) -> list[tuple[int, str]]:
    """A term as numbers of `business days`, `days`, `weeks`, `months`, `years`, in the order of the text; ValueError
    otherwise."""
    if not isinstance(text, str) or len(text) > 200:
        raise ValueError("a term is a short text")
    value = re.sub(r"\b(?:within|after|of|from signing|period|calendar|full|the)\b", " ", text.lower())
    value = re.sub(r"\b[a-z-]+\s*\((\d+)\)", r"\1", value)
    parts: list[tuple[int, str]] = []
    for part in re.split(r",|\band\b|\bplus\b", value):
        if not part.strip():
            continue
        match = re.fullmatch(
            r"\s*(\d{1,5}|[a-z-]+)\s*(business|working|banking|court)?\s*(day|week|month|year|quarter)s?\s*", part)
        if not match:
            raise ValueError(f"the term {text.strip()[:60]!r} is not understood")
        number = int(match[1]) if match[1].isdigit() else _WORDS.get(match[1], -1)
        if number < 0:
            raise ValueError(f"{match[1]!r} is not a number")
        unit = match[3] + "s"
        if match[2] and unit != "days":
            raise ValueError(f"{match[2]} {unit} have no one meaning")
        if match[2] in ("court",):
            raise ValueError("court days differ from court to court")
        parts.append((number * 3, "months") if unit == "quarters" else (number, "business days" if match[2] else unit))
    if not parts:
        raise ValueError("the term is empty")
    return parts
