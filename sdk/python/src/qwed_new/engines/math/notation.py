"""Notations of textbooks, written as the grammar's functions: `lim`, `∫`, `15% of 200`, full-width characters."""

from __future__ import annotations

import re

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D} | str.maketrans(
    "≦≧⩽⩾∙✕✖–", "≤≥≤≥·××-")
_LIMIT = re.compile(
    r"^\s*lim(?:it)?\s*(?:_\s*)?[({]?\s*(?:as\s+)?([a-z])\s*(?:->|→)\s*([-+]?[\w.∞/]+)\s*[)}]?\s*(?:of\s+)?(?![-+]?\s*$)(.+?)\s*(?<!!)=\s*([^=<>]+)$"
)
_ONE_SIDED = re.compile(r"^\s*lim\b[^=]*?(?:->|→)\s*[-+]?[\w.∞/]+(?:[-+](?=[\s)}])|\s*\^\s*\{?\s*[-+])")
_INTEGRAL = re.compile(r"∫\s*(?:_\{?([-\w.∞]+)\}?\s*\^\{?([-\w.∞]+)\}?\s+)?([^∫=<>]+?)\s*\bd([a-z])\b")
_OF = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent|per\s+cent)\s+of\s+(?=[\d(a-z])", re.I)
_DERIVATIVE = re.compile(r"(?<![\w)])(?:d|∂)[²³]?(?:\^\d)?[a-z]?\s*/\s*(?:d|∂)([a-z])(?:[²³]|\^\d)?(?![a-z])")
_SUM = re.compile(r"^\s*∑\s*_\{\s*([a-z])\s*=\s*([^{}=,]+)\}\s*\^\s*(?:\{([^{}=,]+)\}|(\w))(?=[\s(])([^=<>≤≥≠≈∑∏]*[^=<>≤≥≠≈∑∏!\s])\s*(?=[=<>≤≥≠≈])")
_THOUSANDS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{3})+(?![\w,]|\.\d*,)")


def written_out(text: str) -> tuple[str, str]:
    """Return a text in the notation of the grammar, and why it has two readings, or ""."""
    text = re.sub(r"(?<!\w)∞(?!\w)", "oo", text.translate(_FULL_WIDTH))
    if match := _DERIVATIVE.search(text):
        return text, f"how far 'd/d{match[1]}' reaches is not clear: write diff(expression, {match[1]})"
    text = _THOUSANDS.sub(_without_commas, text)
    text = _OF.sub(r"(\1/100) * ", text)
    if _ONE_SIDED.match(text):
        return text, "a limit from one side is not decided: write limit(expression, x, point) for both sides"
    if match := _LIMIT.match(text):
        name, point, body, value = match.groups()
        if _has_several_terms(body):
            return text, "how far 'lim' reaches is not clear: write limit(expression, x, point)"
        return f"limit({body}, {name}, {point}) = {value}", ""
    if "∑" in text or "∏" in text:
        match = _SUM.match(text)
        if not match or _has_several_terms(match[5]) or re.search(r"%|\bmod\b", match[5]):
            return text, "how far '∑' or '∏' reaches is not clear: write sum(k^2, k, 1, 10) or product(k, k, 1, 4)"
        name, low, high, digit, body = match.groups()
        return f"sum({body}, {name}, {low}, {high or digit}){text[match.end():]}", ""
    if "∫" in text:
        if any(_has_several_terms(m[3], ",") for m in _INTEGRAL.finditer(text)):
            return text, "the integral is not clear: write integral(expression, x)"
        written = _INTEGRAL.sub(_integral, text)
        return (text, "the integral has no 'dx': write integral(expression, x)") if "∫" in written else (written, "")
    return text, ""


def _integral(match: re.Match[str]) -> str:
    low, high, body, name = match.groups()
    return f"integral({body}, {name}, {low}, {high})" if low else f"integral({body}, {name})"


def _without_commas(match: re.Match[str]) -> str:
    """Return a number of thousands without its commas. Inside of a function's parentheses commas separate arguments."""
    before, depth = match.string[: match.start()], 0
    for i in range(len(before) - 1, -1, -1):
        depth += (before[i] in ")]}") - (before[i] in "([{")
        if depth < 0:
            group = before[i] == "(" and not re.search(r"\w\s*$", before[:i])
            return match[0].replace(",", "") if group else match[0]
    return match[0].replace(",", "")


def _has_several_terms(text: str, signs: str = "+-,") -> bool:
    """Report whether a text has one of the signs outside of parentheses, or closes one that it does not open."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth < 0 or (c == "," and depth == 0):
            return True
        if c in signs and depth == 0 and i and text[:i].rstrip()[-1:] not in "*/^(":
            return True
    return False
