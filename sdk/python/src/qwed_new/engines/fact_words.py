"""Sentences as tokens: words, numbers with their scale, dates, and adjuncts of time and place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from qwed_new.calendar_dates import read_date


def _regular(base: str) -> tuple[str, ...]:
    stem = base.removesuffix("e")
    return (base, base + "s", stem + "ed", stem + "ed", stem + "ing")


# Verbs with the same meaning: base, third person, past, participle, present participle. The base `found` is left out,
# because it is also a form of `find`.
_VERBS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("", "founds", "founded", "founded", "founding"),
        ("establish", "establishes", "established", "established", "establishing"), _regular("incorporate")),
    (("buy", "buys", "bought", "bought", "buying"), _regular("acquire"), _regular("purchase")),
    (("begin", "begins", "began", "begun", "beginning"), _regular("start"), _regular("commence")),
    (_regular("end"), ("finish", "finishes", "finished", "finished", "finishing"), _regular("conclude")),
    (("rise", "rises", "rose", "risen", "rising"), _regular("increase"), ("grow", "grows", "grew", "grown", "growing")),
    (("fall", "falls", "fell", "fallen", "falling"), _regular("decrease"), _regular("decline"),
        ("drop", "drops", "dropped", "dropped", "dropping")),
    (("", "", "", "located", ""), ("", "", "", "headquartered", ""), ("", "", "", "situated", ""),
        ("", "", "", "based", "")),
    (("big", "", "", "", ""), ("large", "", "", "", "")), (("bigger", "", "", "", ""), ("larger", "", "", "", "")),
)  # fmt: skip
_FORMS: dict[str, frozenset[tuple[int, int]]] = {}
for _group, _verbs in enumerate(_VERBS):
    for _verb in _verbs:
        for _form, _word in enumerate(_verb):
            if _word:
                _FORMS[_word] = _FORMS.get(_word, frozenset()) | {(_group, _form)}

_PAST = frozenset(
    "was were did had began rose grew fell bought sold won lost took made wrote led ran died came went left held met "
    "gave".split()
)
_SUFFIXES = frozenset("corp inc ltd llc gmbh plc ag".split())
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MONTH = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_TOKEN = re.compile(
    r"(?P<date>(?<![\w./-])(?:\d{4}-\d{2}-\d{2}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s+(?:{_MONTH})[a-z]*\.?,?\s+\d{{4}}"
    rf"|(?:{_MONTH})[a-z]*\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}})(?![\w/-]))"
    r"|(?P<number>(?<![\w.:/,-])[-−]?[$€£¥]?[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
    r"(?:\s*%|\s+(?:percent|thousand|million|billion|trillion)\b)?(?=[\s,;)\]]|\.?$))"
    r"|(?P<comma>,)|(?P<word>[^\s,]+)",
    re.I,
)
_PARTICIPLES = frozenset("built bought sold won made held led sung shot sent paid run found known".split())
_WORDS_OF_PLACE = frozenset({"in", "on", "at"})
_PERIODS = frozenset("year month quarter week".split())


@dataclass(frozen=True, slots=True)
class Token:
    """kind is word, number, date or comma; number and currency only of numbers."""

    kind: str
    text: str
    value: str = ""
    currency: str = ""

    @property
    def capital(self) -> bool:
        """Report whether the token is a word with a capital letter, as in a name."""
        return self.kind == "word" and self.text[:1].isupper()


@dataclass(slots=True)
class Statement:
    """The content of a clause: its core in order, and its adjuncts of time and place."""

    core: list[Token]
    adjuncts: list[tuple[Token, ...]] = field(default_factory=list)
    denied: bool = False
    hedged: bool = False

    @property
    def past(self) -> bool:
        """Report whether the clause is about the past."""
        return any(t.text.lower() in _PAST or (t.kind == "word" and t.text.endswith("ed")) for t in self.core)


_HEDGES = frozenset(
    "may might could possibly perhaps probably allegedly reportedly apparently presumably supposedly likely unlikely "
    "maybe potentially purportedly would".split()
)


def tokens(text: str) -> list[Token]:
    """The tokens of a clause."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    text = re.sub(
        r"\bcannot\b", "can not", re.sub(r"n't\b", " not", re.sub(r"\bchief executive officer\b", "CEO", text)))
    found = []
    for match in _TOKEN.finditer(text.rstrip(" .!;")):
        kind, part = match.lastgroup or "word", match[0]
        if kind == "date":
            try:
                found.append(Token("date", part, read_date(part.replace(".", "")).isoformat()))
            except ValueError:
                found.append(Token("word", part))
        elif kind == "number":
            found.append(_number(part))
        else:
            found.append(Token(kind, part))
    return found


def _number(text: str) -> Token:
    sign = "-" if re.match(r"[$€£¥]?[-−]|[-−]", text) else ""
    currency = next((c for c in text if c in "$€£¥"), "")
    digits = re.sub(r"[^\d.]", "", text)
    unit = next((u for u in (*_SCALES, "percent") if text.lower().endswith(u)), "%" if text.endswith("%") else "")
    if unit in _SCALES:
        value = Decimal(digits).scaleb(_SCALES[unit])
        digits, unit = f"{value.normalize():f}", ""
    return Token("number", text, sign + digits + ("%" if unit else ""), currency)


def statement(text: str) -> Statement:
    """A clause without its adjuncts, denial and hedges."""
    rest, adjuncts, given = [], [], tokens(text)
    i = 0
    while i < len(given):
        length = _adjunct(given, i)
        if length:
            adjuncts.append(tuple(t for t in given[i : i + length] if t.kind != "comma"))
            i += length
            while i < len(given) and given[i].kind == "comma":
                i += 1
        else:
            rest.append(given[i])
            i += 1
    while rest and rest[-1].kind == "comma":
        rest.pop()
    made = Statement([], adjuncts)
    for token in rest:
        word = token.text.lower() if token.kind == "word" else ""
        if word in ("not", "never"):
            made.denied = not made.denied
        elif word in _HEDGES:
            made.hedged = True
        else:
            made.core.append(token)
    return made


def _adjunct(given: list[Token], at: int) -> int:
    """Return the number of tokens of an adjunct that begins at a position, or 0."""
    word = given[at].text.lower() if given[at].kind == "word" else ""
    follows = given[at + 1] if at + 1 < len(given) else None
    if follows is None:
        return 1 if word == "yesterday" else 0
    if word == "last" and follows.text.lower() in _PERIODS:
        return 2
    if word == "for" and follows.kind == "number" and follows.currency:
        return 2
    if word == "by":
        return _agent(given, at)
    if word not in _WORDS_OF_PLACE:
        return 0
    if follows.kind == "date" or is_year(follows):
        return 2
    end = at + 1
    while end < len(given) and (
        given[end].capital
        or (given[end].kind == "comma" and end + 1 < len(given) and given[end + 1].capital and end > at + 1)
    ):
        end += 1
    if end > at + 1 and end < len(given) and is_year(given[end]):
        end += 1  # in May 2025
    return end - at if end > at + 1 else 0


def _agent(given: list[Token], at: int) -> int:
    """Return the number of tokens of the agent of a passive, such as `by Ann Lee` in `was founded by Ann Lee`, or 0."""
    before = [t.text.lower() for t in given[:at]]
    if not {"was", "were"} & set(before) or not any(w.endswith(("ed", "en")) or w in _PARTICIPLES for w in before):
        return 0
    end = at + 1
    while end < len(given) and given[end].capital:
        end += 1
    return end - at if end > at + 1 else 0


def is_year(token: Token) -> bool:
    """Whether a number may be a year."""
    return token.kind == "number" and not token.currency and bool(re.fullmatch(r"[12]\d{3}", token.value))


def same(claimed: Token, given: Token, first: bool) -> bool:
    """Report whether a token of a claim has the same meaning as one of a sentence. If both are first, capitals are
    ignored."""
    if claimed.kind != given.kind:
        return False
    if claimed.kind == "date":
        return claimed.value == given.value
    if claimed.kind == "number":
        return claimed.value == given.value and claimed.currency in ("", given.currency)
    a, b = claimed.text, given.text
    if a == b or (first and a[:1].lower() + a[1:] == b[:1].lower() + b[1:]):
        return True
    if a.lower() in ("a", "an") and b.lower() in ("a", "an", "the"):
        return True
    return a.islower() and b.islower() and bool(_FORMS.get(a, frozenset()) & _FORMS.get(b, frozenset()))


def without_suffixes(core: list[Token]) -> list[Token]:
    """Return a core without suffixes of names such as `Corp`."""
    return [t for i,
        t in enumerate(core) if not (i and core[i - 1].capital and t.text.lower().rstrip(".") in _SUFFIXES)]


_END = re.compile(r"[.!?;。！？]+(?=\s|$)|\n+|[。！？]+")
_ABBREVIATION = re.compile(r"(?:\b(?:Corp|Inc|Ltd|Co|Mr|Mrs|Ms|Dr|St|No|vs|Jr|Sr)|\b[A-Z])\.$")


def sentences(context: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence, including its full stop or question mark, with its position in the context."""
    start = 0
    for match in [*_END.finditer(context), None]:
        end = match.end() if match else len(context)
        if match and match[0] == "." and _ABBREVIATION.search(context[start:end]) and end < len(context):
            continue
        text = context[start:end]
        if text.strip():
            yield start + len(text) - len(text.lstrip()), text.strip()
        start = end


_FINITE = r"(?:was|were|is|are|has|have|had|did|does)"


def clauses(sentence: str) -> Iterator[str]:
    """Yield the sentence, and its first clause if another clause with a separate verb is joined to it."""
    yield sentence
    if match := re.search(rf",?\s+(?:and|while|whereas)\s+(?=.*\b{_FINITE}\b)", sentence):
        yield sentence[: match.start()]
