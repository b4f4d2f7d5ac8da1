"""Citations of the Constitution of the United States and of the federal rules of procedure and evidence."""

from __future__ import annotations

import re

_ROMAN = {"I": 1, "V": 5, "X": 10}
_CONSTITUTION = re.compile(
    r"U\.?\s?S\.?\s?Const\.?,?\s+(?P<part>art|amend)\.?\s+(?P<number>[IVX]{1,6}|\d{1,2})"
    r"(?:,?\s*§§?\s*\d{1,2})?(?:,?\s*cl\.?\s*\d{1,2})?\.?", re.I)
_RULE = re.compile(
    r"Fed\.?\s?R\.?\s?(?P<body>Civ\.?\s?P|Crim\.?\s?P|App\.?\s?P|Bankr\.?\s?P|Evid)\.?\s+(?P<number>\d{1,4})"
    r"(?:\.\d{1,2})?"
    r"(?:\([A-Za-z0-9]{1,4}\))*\.?", re.I)
_PARTS = {"art": 7, "amend": 27}
_LAST_RULES = {"civ": 87, "crim": 62, "app": 48, "bank": 9040, "evid": 1103}


def judge(text: str) -> tuple[list[str], dict[str, str | int]] | None:
    """Return what is wrong with a citation of these sources, and its parts; None if the text is no such citation."""
    text = text.strip()
    if match := _CONSTITUTION.fullmatch(text):
        part, number = match["part"].lower(), _number(match["number"].upper())
        issues = [] if 1 <= number <= _PARTS[part] else [f"the Constitution has no {part}. {match['number']}"]
        return issues, {"reporter": "U.S. Const.", part: number, "section": match["number"]}
    if match := _RULE.fullmatch(text):
        body, number = match["body"].lower(), int(match["number"])
        last = next(n for name, n in _LAST_RULES.items() if body.startswith(name))
        issues = [] if 1 <= number <= last else [f"the rules end with {last}"]
        return issues, {"reporter": f"Fed. R. {match['body']}", "section": match["number"]}
    return None


def _number(text: str) -> int:
    """Return the value of a number in Arabic or well-formed Roman digits, or 0."""
    if text.isdigit():
        return int(text)
    if not re.fullmatch(r"X{0,3}(?:IX|IV|V?I{0,3})", text):
        return 0
    values = [_ROMAN[c] for c in text]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))
