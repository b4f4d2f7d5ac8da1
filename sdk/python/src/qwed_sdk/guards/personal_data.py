"""Personal data and credentials in texts, by pattern and check digit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

import phonenumbers
from stdnum import iban, luhn

MAX_TEXT = 2_000_000

_HIDDEN = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xAD])


def _ssn(text: str) -> bool:
    area, group, serial = re.split(r"[-\s]", text)
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def _card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return 13 <= len(digits) <= 19 and luhn.is_valid(digits) and len(set(digits)) > 1


def _phone(text: str) -> bool:
    try:
        number = phonenumbers.parse(text, "US")
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(number)


PATTERNS: dict[str, tuple[re.Pattern[str], Callable[[str], bool] | None]] = {
    "SSN": (re.compile(r"(?<![\d-])\d{3}[- ]\d{2}[- ]\d{4}(?![\d-])"), _ssn),
    "CREDIT_CARD": (re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]?\d)"), _card),
    "EMAIL": (re.compile(r"[\w.%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,24}\b"), None),
    "PHONE": (
        re.compile(
            r"(?<![\w.])(?:\+\d{1,3}[\s.-]?)?(?:\(\d{3}\)\s?|\d{3}[\s.-])\d{3}[\s.-]\d{4}(?!\w)"
            r"|(?<!\w)\+\d{8,15}(?!\w)"),
        _phone,
    ),
    "IBAN": (re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b"), lambda t: bool(iban.is_valid(t))),
    "PASSPORT": (re.compile(r"\bpassport(?:\s+(?:no|number))?[.:#\s]+[a-z]{0,2}\d{6,9}\b", re.I), None),
    "AWS_ACCESS_KEY": (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), None),
    "PRIVATE_KEY": (re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"), None),
    "JWT": (re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"), None),
    "BEARER_TOKEN": (re.compile(r"\bBearer\s+[\w.~+/=-]{20,}", re.I), None),
    "API_KEY": (
        re.compile(
            r"\b(?:sk-(?:ant-|proj-)?[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|xox[baprs]-[\w-]{10,}"
            r"|[sr]k_live_[A-Za-z0-9]{16,}|AIza[\w-]{35})"
        ),
        None,
    ),
}


def find(text: str, names: set[str] | None = None, extra: dict[str, re.Pattern[str]] | None = None) -> list[
    dict[str, Any]]:
    """What is in a text, as type, count and spans; of PATTERNS those in names, all but PASSPORT without it."""
    text = unicodedata.normalize("NFKC", text[:MAX_TEXT]).translate(_HIDDEN)
    chosen = {n: p for n, p in PATTERNS.items() if (n in names if names is not None else n != "PASSPORT")}
    found = []
    for name, (pattern, check) in {**chosen, **{n: (p, None) for n, p in (extra or {}).items()}}.items():
        spans = [m.span() for m in pattern.finditer(text) if check is None or check(m[0])]
        if spans:
            found.append({
                "type": name, "count": len(spans), "spans": spans,
                "message": f"Found {len(spans)} instance(s) of {name}."})
    return found
