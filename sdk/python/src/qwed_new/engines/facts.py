"""Facts: whether a context supports a claim, part by part, each with the span that does."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from qwed_new.calendar_dates import read_date
from qwed_new.limits import TooLarge, bounded_text
from qwed_new.verdict import Status, Verdict

ENGINE = "fact"
MAX_CLAIM, MAX_CONTEXT = 5_000, 1_000_000

# Verbs and nouns that say the same of a subject.
_SAME = (
    ("found", "establish", "create", "start", "incorporate", "form", "set up", "launch"), ("buy", "acquire", "purchase", "take over"), ("bear", "born"), ("die", "pass away", "decease"),
    ("locate", "base", "headquarter", "situate", "sit"), ("employ", "work for"), ("big", "large"), ("cost", "price"), ("begin", "start", "commence"), ("end", "finish", "conclude"),
    ("earn", "make"), ("rise", "increase", "grow"), ("fall", "decrease", "decline", "drop"), ("lead", "head", "run"), ("ceo", "chief executive officer"), ("write", "author"),
)  # fmt: skip
_IRREGULAR = {"founded": "found", "was": "be", "is": "be", "are": "be", "were": "be", "bought": "buy", "began": "begin", "begun": "begin", "rose": "rise", "risen": "rise",
              "fell": "fall", "fallen": "fall", "grew": "grow", "grown": "grow", "led": "lead", "ran": "run", "wrote": "write", "written": "write", "made": "make", "sold": "sell",
              "won": "win", "lost": "lose", "had": "have", "has": "have", "born": "bear", "died": "die", "took": "take", "taken": "take", "costs": "cost", "men": "man", "women": "woman",
              "people": "person", "children": "child", "companies": "company", "cities": "city", "countries": "country", "employees": "employee"}  # fmt: skip
_STOP = frozenset("a an the of in on at to for by with from as and or but be it its this that these those there their his her he she they which who whom company firm organization "
                  "organisation business corporation year month day date about approximately exactly also has have had been being will would can could may did do does than then so "
                  "inc ltd corp llc gmbh total".split())  # fmt: skip
_NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|none|without|nobody|nothing|cannot|[a-z]+n't|denied|denies|false|fails?|failed|lacks?|lacked|refused|un(?:true|likely))\b",
    re.I,
)
_HEDGE = re.compile(
    r"\b(?:may|might|could|possibly|perhaps|probably|allegedly|reportedly|rumou?red|claims?|claimed|planned|plans?|expected|proposed|would|if|unless|almost|nearly|alleged|considered|supposed(?:ly)?)\b",
    re.I,
)
_NUMBER = re.compile(
    r"(?<![\w.])[$€£]?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*(%|percent\b|thousand\b|million\b|billion\b|trillion\b|[kmb]\b)?", re.I
)
_SCALE = {"thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "b": 9, "trillion": 12}
_DATE = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|\d{1,2}(?:st|nd|rd|th)?\s+(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,?\s+\d{4}|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4})\b",
    re.I,
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


@dataclass(slots=True)
class _Parts:
    """What a sentence says: numbers, dates, words, whether it denies or only supposes."""

    numbers: set[str] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    denied: bool = False
    hedged: bool = False


def verify_fact(claim: str, context: str) -> Verdict:
    """Decide whether a sentence of the context supports the claim, or says otherwise.

    VERIFIED needs one sentence that has every number, date, name and content word of the claim, with the same denial; ERROR
    needs a sentence on the same matter with another number, date, or the opposite denial. Anything else is INCONCLUSIVE.
    """
    try:
        claim, context = bounded_text(claim, "claim", MAX_CLAIM), bounded_text(context, "context", MAX_CONTEXT)
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error))
    except ValueError as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, str(error))
    wanted = _parts(claim)
    if not wanted.words - wanted.names and not wanted.numbers and not wanted.names:
        return Verdict(Status.INCONCLUSIVE, ENGINE, "the claim is not understood", {"claim": claim[:200]})
    if re.search(r"[^\W\d_]", claim) and not re.search(r"[A-Za-z]", claim):
        return _verbatim(claim, context)
    refutation: Verdict | None = None
    hedged: str | None = None
    for start, sentence in _sentences(context):
        given = _parts(sentence)
        answer = _compare(wanted, given)
        evidence = _evidence(wanted, sentence, start)
        if answer == "supports":
            return Verdict(Status.VERIFIED, ENGINE, "a sentence of the context supports every part of the claim", evidence)
        if answer == "hedged":
            hedged = sentence
        if answer.startswith("refutes") and refutation is None:
            refutation = Verdict(
                Status.ERROR,
                ENGINE,
                f"the context says otherwise: {answer.removeprefix('refutes ')}",
                {**evidence, "counterexample": sentence},
            )
    if refutation is not None:
        return refutation
    if hedged is not None:
        return Verdict(Status.INCONCLUSIVE, ENGINE, "the context only supposes it", {"span": hedged})
    return Verdict(
        Status.INCONCLUSIVE,
        ENGINE,
        "no sentence of the context has all parts of the claim",
        {"numbers": sorted(wanted.numbers), "words": sorted(wanted.words)},
    )


def _verbatim(claim: str, context: str) -> Verdict:
    text = unicodedata.normalize("NFC", claim).strip(" .。！!?？")
    at = unicodedata.normalize("NFC", context).find(text)
    if (
        at >= 0
        and not re.search(r"[^\s。．.!！?？\n]", context[max(0, at - 1) : at])
        and context[at + len(text) :].lstrip()[:1] in ("", "。", ".", "!", "！", "\n")
    ):
        return Verdict(
            Status.VERIFIED, ENGINE, "the context has the claim word for word", {"span": text, "start": at, "end": at + len(text)}
        )
    return Verdict(
        Status.INCONCLUSIVE,
        ENGINE,
        "claims in this script are compared word for word, and the context does not have it so",
        {"claim": text},
    )


def _evidence(wanted: _Parts, sentence: str, start: int) -> dict[str, Any]:
    parts = [*sorted(wanted.dates), *sorted(wanted.numbers), *sorted(wanted.words)]
    return {
        "span": sentence,
        "start": start,
        "end": start + len(sentence),
        "parts": parts,
        "method": "every part of the claim in one sentence",
    }


def _compare(wanted: _Parts, given: _Parts) -> str:
    """supports, hedged, refutes WHY, or nothing."""
    missing = wanted.words - given.words
    numbers, dates = wanted.numbers - given.numbers, wanted.dates - given.dates
    names = wanted.names - given.names
    topic = {w for w in wanted.words - wanted.names if w in given.words}
    subject = (not names and (bool(wanted.names) or bool(topic))) or (not wanted.names and bool(topic))
    about = bool(wanted.names & given.names) or not wanted.names
    loose = _generic_subject(wanted, given, missing)
    if (not missing or loose) and not numbers and not dates:
        if given.hedged != wanted.hedged:
            return "hedged"
        if not loose and not _same_order(wanted, given):
            return ""
        return "supports" if given.denied == wanted.denied else "refutes it says the opposite"
    if (subject or loose) and about and (not missing or loose) and not given.hedged and not given.denied and not wanted.denied:
        if dates and given.dates and not given.dates & wanted.dates:
            return f"refutes the date is {', '.join(sorted(given.dates))}"
        if numbers and given.numbers and len(given.numbers) == len(wanted.numbers):
            return f"refutes the number is {', '.join(sorted(given.numbers - wanted.numbers))}"
    return ""


def _generic_subject(wanted: _Parts, given: _Parts, missing: set[str]) -> bool:
    """`The company was founded` about a sentence whose subject is a name: all other words are there."""
    return not missing and not wanted.names and bool(wanted.words & given.words)


def _same_order(wanted: _Parts, given: _Parts) -> bool:
    """Two names stand in the same order: who bought whom matters."""
    mine = [w for w in wanted.order if w in wanted.names]
    theirs = [w for w in given.order if w in wanted.names]
    return len(dict.fromkeys(mine)) < 2 or list(dict.fromkeys(mine)) == list(dict.fromkeys(theirs))


def _parts(sentence: str) -> _Parts:
    text = unicodedata.normalize("NFKC", sentence).replace("’", "'")
    parts = _Parts(denied=len(_NEGATION.findall(text)) % 2 == 1, hedged=bool(_HEDGE.search(text)))
    for match in _DATE.finditer(text):
        try:
            parts.dates.add(read_date(match[0].replace(".", "")).isoformat())
        except ValueError:
            continue
    rest = _DATE.sub(" ", text)
    for number, unit in _NUMBER.findall(rest):
        value = Decimal(number.replace(",", "")).scaleb(_SCALE.get(unit.lower(), 0))
        parts.numbers.add(f"{value.normalize():f}" + ("%" if unit.lower() in ("%", "percent") else ""))
    first = True
    for match in _WORD.finditer(_NEGATION.sub(" ", _HEDGE.sub(" ", rest))):
        word = match[0].removesuffix("'s")
        stem = _stem(word.lower())
        if stem and stem not in _STOP and stem not in _SCALE and stem != "percent":
            parts.words.add(stem)
            parts.order.append(stem)
            if word[0].isupper() and not first:
                parts.names.add(stem)
            elif word[0].isupper() and word.lower() not in _STOP and not _is_common(word.lower()):
                parts.names.add(stem)
        first = False
    return parts


def _is_common(word: str) -> bool:
    return word in _IRREGULAR or any(word.startswith(w) for group in _SAME for w in group)


def _stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    for suffix, replacement in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
            word = word[: -len(suffix)] + replacement
            break
    word = word.removesuffix("e") if len(word) > 4 else word
    for group in _SAME:
        if any(word == w or word == w.removesuffix("e") for w in group):
            return group[0]
    return word


def _sentences(context: str) -> list[tuple[int, str]]:
    found = []
    for match in re.finditer(r"(?:[^.!?;\n。]|\.(?=\d|[A-Za-z]\.|,))+[.!?;。]?", context):
        text = match[0].strip()
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        clauses = re.split(r"(,\s+(?:and|but|while|whereas|though|although)\s+|;\s+)", text)
        if len(clauses) == 1 or not _NEGATION.search(text):
            found.append((start, text)) if text else None
        if len(clauses) > 1:  # each clause denies for itself
            for clause in clauses:
                if not re.match(r"[,;]", clause):
                    found.append((start, clause))
                start += len(clause)
    return found[:20_000]
