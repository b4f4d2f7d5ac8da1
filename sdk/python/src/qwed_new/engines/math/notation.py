"""Notations of textbooks, written as the grammar's functions: `lim`, `∫`, `15% of 200`, full-width characters."""

from __future__ import annotations

import re
import unicodedata

from qwed_new.engines.math.latex import written_plainly

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D} | str.maketrans(
    "≦≧⩽⩾∙✕✖–", "≤≥≤≥·××-")
_LIMIT = re.compile(
    r"^\s*+lim(?:it)?\s*+(?:_\s*+)?[({]?\s*+(?:as\s+)?([a-z])\s*+(?:->|→)\s*+([-+]?[\w.∞/]+)\s*+[)}]?\s*+"
    r"(?:of\s++)?(?![-+]?\s*$)(.+?)\s*+(?<!!)=\s*+([^=<>]+)$"
)
_LIMIT_OF = re.compile(
    r"^\s*+(?:the\s++)?lim(?:it)?\s++of\s++(.+?)\s++as\s++([a-z])\s*+(?:->|→|approaches|goes\s++to|tends\s++to)"
    r"\s*+([-+]?[\w.∞/]+)"
    r"\s*+(?:=|is|equals)\s*+([^=<>]+)$", re.I)
_ONE_SIDED = re.compile(
    r"^(\s*lim(?:it)?(?![a-z])[^=]*?(?:->|→)\s*[-+]?[\w.∞/]+)(?:([-+])(?=[\s)}])|\s*\^\s*(?:([-+])|\{\s*([-+])\s*\}))")
_INTEGRAL = re.compile(
    r"∫\s*+(?:_\{?\s*+([-\w.∞]++)\s*+\}?\s*+\^(?:\{\s*+([-\w.∞]++)\s*+\}\s*+|([-\w.∞]++)\s++))?"
    r"([^∫=<>_]+?)\s*+\bd([a-z])\b")
_OF = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent|per\s+cent)\s+of\s+(?=[\d(a-z])", re.I)
_IS = re.compile(r"^(.+?)\s+(?:is(?:\s+equal\s+to)?|equals|makes|gives)\s+(.+)$", re.I)
_VALUE = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?\s*%?")
_DERIVATIVE = re.compile(r"(?<![\w)])(?:d|∂)[²³]?(?:\^\d)?[a-z]?\s*/\s*(?:d|∂)([a-z])(?:[²³]|\^\d)?(?![a-z])")
_SUM = re.compile(
    r"^\s*([∑∏])\s*_\{\s*([a-z])\s*=\s*([^{}=,]+)\}\s*\^\s*(?:\{([^{}=,]+)\}|(\w))(?=[\s(])"
    r"([^=<>≤≥≠≈∑∏]*[^=<>≤≥≠≈∑∏!\s])\s*(?=[=<>≤≥≠≈])")
_FUNCTION_WORDS = frozenset("sqrt cbrt sin cos tan log ln exp abs mod gcd lcm pi lim integral diff sum".split())
_FRACTION = re.compile(r"(\d*)([¼-¾⅐-⅞])")
_BOUNDS = re.compile(r"∫\s*([₀-₉₋]+)\s*([⁰¹²³⁴-⁹⁻]+)")
_CUBE_ROOT = re.compile(r"∛\s*(?:(\()|(\d+(?:\.\d+)?|[a-z])(?![\w(.]))")
_ANGLE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:°|degrees?\b|deg\b)(?!\s*[A-Za-z])")
_CHOOSE = re.compile(r"(?<![\w.])C\((?=[^(),]+,[^(),]+\))")
_RANGE = re.compile(
    r"\b(sum|Sum|product|Product|integral|integrate|Integral)\((.*?),\s*\(\s*([a-z])\s*,\s*([^(),]+),\s*"
    r"([^(),]+)\)\s*\)")
_LOG_BASE = re.compile(r"\blog_\{?(\d+|[a-z])\}?\s*\(")
_EXPONENT = re.compile(r"\^\s*\{([^{}]*)\}")
_RELATION = re.compile(r"<=|>=|!=|==|[=<>≤≥≠≈]")
_THOUSANDS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?:,\d{3})+(?![\w,]|\.\d*,)")


def written_out(text: str) -> tuple[str, str]:
    """Return a text in the notation of the grammar, and why it has two readings, or ""."""
    text = re.sub(r"(?<!\w)∞(?!\w)", "oo", _characters(written_plainly(text.translate(_FULL_WIDTH))))
    text = _with_equals(_LIMIT_OF.sub(r"limit(\1, \2, \3) = \4", text))
    text = "".join(_derivative(part) for part in re.split(f"({_RELATION.pattern})", text))
    if match := _DERIVATIVE.search(text):
        return text, f"how far 'd/d{match[1]}' reaches is not clear: write diff(expression, {match[1]})"
    text = _THOUSANDS.sub(_without_commas, text)
    text = _OF.sub(r"(\1/100) * ", text)
    side = ""
    if match := _ONE_SIDED.match(text):
        sign = match[2] or match[3] or match[4]
        side, text = f", {sign}1", match[1] + text[match.end() :]
    if match := _LIMIT.match(text):
        name, point, body, value = match.groups()
        if _has_several_terms(body):
            return text, f"how far 'lim' reaches is not clear: write limit(expression, x, point{side})"
        return _EXPONENT.sub(r"^(\1)", f"limit({body}, {name}, {point}{side}) = {value}"), ""
    if side:
        return text, f"the limit from one side is not clear: write limit(expression, x, point{side}) = value"
    if "∑" in text or "∏" in text:
        match = _SUM.match(text)
        if not match or _has_several_terms(match[6]) or re.search(r"%|\bmod\b", match[6]):
            return text, "how far '∑' or '∏' reaches is not clear: write sum(k^2, k, 1, 10) or product(k, k, 1, 4)"
        sign, name, low, high, digit, body = match.groups()
        function, (name, body) = "sum" if sign == "∑" else "product", _index(name, body)
        return _EXPONENT.sub(
            r"^(\1)", f"{function}({body}, {name}, {low}, {high or digit}){text[match.end():]}"), ""
    if "∫" in text:
        if any(_has_several_terms(m[4], ",") for m in _INTEGRAL.finditer(text)):
            return text, "the integral is not clear: write integral(expression, x)"
        written = _EXPONENT.sub(r"^(\1)", _INTEGRAL.sub(_integral, text))
        return (text, "the integral has no 'dx': write integral(expression, x)") if "∫" in written else (written, "")
    return _EXPONENT.sub(r"^(\1)", text), ""


def _with_equals(text: str) -> str:
    """Write `20% of 50 is 10` with '=': a side is a number, and no word is in the other one but of functions."""
    match = _IS.match(text.strip().rstrip(".")) if not _RELATION.search(text) else None
    if match is None or not any(_VALUE.fullmatch(side) for side in match.groups()):
        return text
    other = _OF.sub("", match[2] if _VALUE.fullmatch(match[1]) else match[1])
    words = set(re.findall(r"[A-Za-z]{2,}", other)) - _FUNCTION_WORDS
    return text if words else f"{match[1]} = {match[2]}"


def _characters(text: str) -> str:
    """Replace single characters and short forms by functions and numbers."""
    text = _FRACTION.sub(_fraction, text)
    text = _BOUNDS.sub(lambda m: f"∫_{{{_digits(m[1])}}}^{{{_digits(m[2])}}} ", text)
    text = _CUBE_ROOT.sub(lambda m: "cbrt(" if m[1] else f"cbrt({m[2]})", text)
    text = re.sub(r"(?<=[\dπi])\s*rad(?:ians?)?\b(?!\s*[A-Za-z])", "", _ANGLE.sub(r"(\1*pi/180)", text))
    text = re.sub(r"[ΣΠ](?=\s*_)", lambda m: "∑" if m[0] == "Σ" else "∏", _CHOOSE.sub("binomial(", text))
    text = _RANGE.sub(_range, text)
    while match := _LOG_BASE.search(text):
        end = _closing(text, match.end())
        text = f"{text[:match.start()]}log({text[match.end():end]}, {match[1]}){text[end + 1:]}"
    return text


def _range(match: re.Match[str]) -> str:
    """Write `sum(i, (i, 1, 10))`, as SymPy has it, with the grammar's arguments."""
    function, body, name, low, high = match.groups()
    name, body = _index(name, body)
    return f"{function.lower()}({body}, {name}, {low}, {high})"


def _index(name: str, body: str) -> tuple[str, str]:
    """An index and what is summed, with another letter for the index i, which is the imaginary unit elsewhere."""
    if name != "i":
        return name, body
    other = next(c for c in "kjmpqrst" if c not in body)
    return other, re.sub(r"(?<![A-Za-z])i(?![A-Za-z])", other, body)


def _digits(text: str) -> str:
    """Write subscripts and superscripts as digits."""
    return unicodedata.normalize("NFKC", text).replace("\u2212", "-")


def _fraction(match: re.Match[str]) -> str:
    value = unicodedata.normalize("NFKC", match[2]).replace("\u2044", "/")
    return f"({match[1]} + {value})" if match[1] else f"({value})"


def _closing(text: str, at: int) -> int:
    """Return the position of the parenthesis that closes the one before `at`, or the end of the text."""
    depth = 1
    for i in range(at, len(text)):
        depth += (text[i] in "([") - (text[i] in ")]")
        if depth == 0:
            return i
    return len(text)


def _derivative(side: str) -> str:
    """Write a side that is one derivative as diff; return any other side as it is. What d/dx applies to is clear if it
    is in parentheses, or is one term."""
    match = _DERIVATIVE.match(side.strip())
    if match is None or re.match(r"(?:d|∂)[²³]?(?:\^\d)?[a-z]", match[0]):
        return side
    body = side.strip()[match.end() :].strip()
    if body[:1] in ("(", "["):
        if _closing(body, 1) != len(body) - 1:
            return side
        body = body[1:-1]
    elif not body or _has_several_terms(body):
        return side
    order = unicodedata.normalize("NFKC", match[0].split("/")[0]).lstrip("d∂^")
    times = int(order) if order else 1
    return f" {'diff(' * times}{body}{f', {match[1]})' * times} "


def _integral(match: re.Match[str]) -> str:
    low, high, digit, body, name = match.groups()
    high = high or digit
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
