"""Notations of textbooks, written as the grammar's functions: `lim`, `∫`, `15% of 200`, full-width characters."""

from __future__ import annotations

import re

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D}
_LIMIT = re.compile(
    r"^\s*lim(?:it)?\s*(?:_\s*)?[({]?\s*(?:as\s+)?([a-z])\s*(?:->|→)\s*([-+]?[\w.∞/]+)\s*[)}]?\s*(?:of\s+)?(?![-+]?\s*$)(.+?)\s*=\s*([^=<>]+)$"
)
_INTEGRAL = re.compile(r"∫\s*(?:_\{?([-\w.∞]+)\}?\s*\^\{?([-\w.∞]+)\}?\s+)?([^∫=<>]+?)\s*\bd([a-z])\b")
_OF = re.compile(r"(\d+(?:\.\d+)?)\s*%\s+of\s+(?=[\d(a-z])", re.I)
_DERIVATIVE = re.compile(r"(?<![\w)])d\s*/\s*d[a-z]\b")


def written_out(text: str) -> tuple[str, str]:
    """Return a text in the notation of the grammar, and why it has two readings, or ""."""
    text = re.sub(r"(?<!\w)∞(?!\w)", "oo", text.translate(_FULL_WIDTH))
    if _DERIVATIVE.search(text):
        return text, "how far 'd/dx' reaches is not clear: write diff(expression, x)"
    text = _OF.sub(r"(\1/100) * ", text)
    if match := _LIMIT.match(text):
        name, point, body, value = match.groups()
        if _has_several_terms(body):
            return text, "how far 'lim' reaches is not clear: write limit(expression, x, point)"
        return f"limit({body}, {name}, {point}) = {value}", ""
    if "∫" in text:
        written = _INTEGRAL.sub(_integral, text)
        return (text, "the integral has no 'dx': write integral(expression, x)") if "∫" in written else (written, "")
    return text, ""


def _integral(match: re.Match[str]) -> str:
    low, high, body, name = match.groups()
    return f"integral({body}, {name}, {low}, {high})" if low else f"integral({body}, {name})"


def _has_several_terms(text: str) -> bool:
    """Report whether a sum stands outside of parentheses."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c in "+-" and depth == 0 and i and text[:i].rstrip()[-1:] not in "*/^(":
            return True
    return False
