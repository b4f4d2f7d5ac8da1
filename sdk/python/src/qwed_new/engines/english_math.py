"""Arithmetic in words: a small, fixed English, turned into the grammar of the math engine without a model."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen").split()
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
NUMBER_WORDS = frozenset({*_SMALL, *_TENS, *"dozen hundred thousand million billion trillion half quarter".split()})
_N = r"\(?-?[\d.]+(?:\s*[-+*/^]\s*[\d.]+)*\)?"

_RULES: tuple[tuple[str, str], ...] = (
    (r"(\d),(?=\d{3}\b)", r"\1"),
    (r"\bminus (?=\d)(?<!\d )", "- "),
    (r"\bsquare root of\b", "sqrt of"),
    (r"\bcube root of\b", "cbrt of"),
    (rf"\b(?:the )?(sqrt|cbrt) of ({_N}|[a-z])", r"\1(\2)"),
    (rf"\b(?:the )?(?:natural log(?:arithm)?|ln) of ({_N}|[a-z])", r"ln(\1)"),
    (rf"\b(?:the )?(sin|cos|tan|sine|cosine|tangent) of ({_N}|[a-z])", r"\1(\2)"),
    (r"\b(?:the )?factorial of (\d+)", r"(\1)!"),
    (rf"\b(?:the )?absolute value of ({_N}|[a-z])", r"abs(\1)"),
    (rf"\b(?:the )?sum of ({_N}|[a-z]) and ({_N}|[a-z])", r"(\1 + \2)"),
    (rf"\b(?:the )?product of ({_N}|[a-z]) and ({_N}|[a-z])", r"(\1 * \2)"),
    (rf"\b(?:the )?difference (?:of|between) ({_N}|[a-z]) and ({_N}|[a-z])", r"(\1 - \2)"),
    (rf"\b(?:the )?quotient of ({_N}|[a-z]) and ({_N}|[a-z])", r"(\1 / \2)"),
    (r"\b(?:the )?(?:gcd|greatest common divisor) of (\d+) and (\d+)", r"gcd(\1, \2)"),
    (r"\b(?:the )?(?:lcm|least common multiple) of (\d+) and (\d+)", r"lcm(\1, \2)"),
    (r"([\d.]+)\s*(?:%|percent|per cent)\s+of\s+([\d.]+)", r"(\1/100*\2)"),
    (r"([\d.]+)\s*(?:percent|per cent)\b", r"(\1/100)"),
    (r"\bhalf of ([\d.]+)", r"(\1/2)"),
    (r"\b(?:twice|double) ([\d.]+|[a-z])\b", r"(2*\1)"),
    (r"([\d.]+|\b[a-z]\b|\)) (?:raised )?to the power (?:of )?([\d.]+)", r"\1^\2"),
    (r"([\d.]+|\b[a-z]\b|\)) squared\b", r"\1^2"),
    (r"([\d.]+|\b[a-z]\b|\)) cubed\b", r"\1^3"),
    (r"\bplus\b", "+"), (r"\bminus\b", "-"), (r"\b(?:times|multiplied by)\b", "*"), (r"\b(?:divided by|over)\b", "/"),
    (r"\bmodulo\b", "mod"),
    (r"\b(?:is|are) (?:greater|more|larger|bigger) than or equal to\b|\bis at least\b", ">="),
    (r"\bis (?:less|smaller) than or equal to\b|\bis at most\b", "<="),
    (r"\b(?:is|are) (?:greater|more|larger|bigger) than\b", ">"), (r"\b(?:is|are) (?:less|fewer|smaller) than\b", "<"),
    (r"\b(?:is not equal to|does not equal|is not)\b", "!="),
    (r"\bis (?:approximately|about|roughly)\b|\bapproximately equals\b", "≈"),
    (r"\b(?:is equal to|is exactly|equals?|makes?|gives?|is|are)\b", "="),
)  # fmt: skip
_ONE = r"(?:\([^()]*\)|-?[\d.]+|[a-z]\b)"
_MORE = (
    r"\s*(?:[-+*/^!%−]|(?:plus|minus|times|multiplied|divided|over|squared|cubed|raised|to the power|mod|modulo"
    r"|percent|per cent)\b)")
# Phrases with two readings: `the square root of 16 plus 9`, `the sum of 1 and 2 times 3`, `-3 squared`, `the
# difference between 3 and 5`.
_TWO_READINGS = re.compile(
    r"(?:\b(?:square root|cube root|sqrt|cbrt|log|logarithm|ln|sine?|cos(?:ine)?|tan(?:gent)?|factorial"
    rf"|absolute value|half|percent|per cent)|%) of (?:the )?{_ONE}{_MORE}"
    rf"|\b(?:twice|double) {_ONE}{_MORE}"
    rf"|\b(?:sum|product|difference|quotient) (?:of|between) {_ONE} and {_ONE}{_MORE}"
    rf"|(?:-|−|minus |negative ){_ONE} (?:squared|cubed|to the power|raised)"
)
_DIFFERENCE = re.compile(r"\bdifference between (-?[\d.]+|[a-z]) and (-?[\d.]+|[a-z])")
_QUESTION = re.compile(
    r"^(?:what(?:'s| is| are| does)?|how much is|calculate|compute|evaluate|find)\s+(.+?)(?:\s+equals?)?$")
_YES_NO = re.compile(
    r"^(?:is it true that|is it correct that|verify that|check that|prove that|show that|is|does|are)\s+(.+)$")


def translate(text: str) -> tuple[str, bool] | None:
    """The claim in the grammar of the math engine, and whether it is a question for a value; None when a word is left
    over, or there are two readings."""
    value = " ".join(text.strip().rstrip("?.!").split())
    lowered = _numbers(value.lower())
    question = False
    if match := _QUESTION.match(lowered):
        lowered, question = match[1], True
    elif match := _YES_NO.match(lowered):
        lowered = re.sub(r"\bequal to\b|\bequal\b", "equals", match[1])
        lowered = re.sub(
            r"^(\S+) ((?:greater|larger|bigger|less|smaller) than (?:or equals )?\S+)$", r"\1 is \2", lowered)
        lowered = lowered.replace("or equals ", "or equal to ")
    if _TWO_READINGS.search(lowered) or any(_sign_is_open(*m.groups()) for m in _DIFFERENCE.finditer(lowered)):
        return None
    for _ in range(3):
        before = lowered
        for pattern, replacement in _RULES:
            lowered = re.sub(pattern, replacement, lowered)
        if lowered == before:
            break
    lowered = re.sub(r"\bthe\b", " ", lowered)
    if re.search(
        r"[a-z]{2,}",
        re.sub(
            r"\b(?:sqrt|cbrt|ln|log|exp|sine?|cosi?n?e?|tan(?:gent)?|abs|gcd|lcm|mod|pi|to|decimal|places?|diff"
            r"|integral|limit|sum)\b",
            "",
            lowered,
        ),
    ):
        return None
    lowered = re.sub(r"\bsine\b", "sin", re.sub(r"\bcosine\b", "cos", re.sub(r"\btangent\b", "tan", lowered)))
    if question and re.search(r"[=<>≈]", lowered):
        return None
    return lowered.strip(), question


def _sign_is_open(a: str, b: str) -> bool:
    """Whether `the difference between a and b` may be meant with either sign."""
    try:
        return Decimal(a) < Decimal(b)
    except InvalidOperation:
        return True


def _numbers(text: str) -> str:
    units = "|".join(_SMALL)
    tens = "|".join(_TENS)
    text = re.sub(rf"\b({tens})[- ]({'|'.join(_SMALL[1:10])})\b", lambda m: str(_TENS[m[1]] + _SMALL.index(m[2])), text)
    text = re.sub(rf"\b({tens})\b", lambda m: str(_TENS[m[1]]), text)
    text = re.sub(rf"\b({units})\b", lambda m: str(_SMALL.index(m[1])), text)
    return re.sub(r"\b(\d+|a|one) hundred\b", lambda m: str(int(m[1]) * 100 if m[1].isdigit() else 100), text)
