"""Facts: decide whether a sentence of a context has the meaning of a claim. The words must be equal, with few
exceptions."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from qwed_new.engines.fact_clauses import asserted
from qwed_new.engines.fact_words import Statement, Token, clauses, is_year, same, sentences, statement, without_suffixes
from qwed_new.engines.prose import RETRACTED
from qwed_new.limits import TooLarge, bounded_text
from qwed_new.verdict import Status, Verdict

ENGINE = "fact"
MAX_CLAIM, MAX_CONTEXT, MAX_SENTENCES = 5_000, 1_000_000, 20_000
METHOD = "the claim's words in their order; adjuncts of time and place compared on their own"

_GENERIC = frozenset("company firm business corporation organization organisation".split())
# Words with which a sentence casts doubt on an adjacent sentence, or on a clause.
_DOUBT = re.compile(
    r"\b(?:false(?:ly)?|myths?|untrue|incorrect(?:ly)?|wrong(?:ly)?|hoax(?:es)?|fiction\w*|rumou?rs?|lie[sd]?|lying"
    r"|disprov\w+|debunk\w+|not true|opposite|contrary|satir\w+|jok\w+|misinformation|fake|pretend\w*|imagine|suppose"
    r"|novel|denied|denies|doubt\w*|retract\w*|withdrawn|corrected|corrections?|errat\w+|april fools?|mistake\w*"
    r"|in error|unconfirmed|unverified|alleged\w*|disput\w+|refut\w+|exaggerat\w+|speculat\w+|parody|spoof|prank"
    r"|misquot\w+|misreport\w+|fabricat\w+|invented|overturned|rescinded|annulled|no longer)\b",
    re.I,
)
# A sentence about the whole text, which counts wherever it stands if it casts doubt.
_ABOUT_THE_TEXT = re.compile(
    r"\b(?:above|foregoing|following|(?:this|that|the) (?:report|article|story|text|statement|claim|post|page|news)"
    r"|these (?:reports|statements|claims)|everything|all of (?:this|it))\b", re.I)
# Words that have another meaning in capitals, or at the beginning of a name.
_CASE_MATTERS = frozenset(
    "it us who may march will mark bill can does am ai as in or me is no so ok an a i rose polish turkey china "
    "china's".split())
# Events that happen only once, so that another date contradicts the claim.
_ONCE = frozenset(
    "founded established incorporated born died is are ends begins starts expires ended began started expired "
    "signed".split())


def verify_fact(claim: str, context: str) -> Verdict:
    """Decide whether a sentence of the context supports or contradicts the claim.

    VERIFIED requires a clause with the claim's words in their order, except for a few verbs with the same meaning. The
    clause may have further adjuncts such as `in 2020` and `in Paris`, but only if it is about the past. `The company`
    may be the only company that is named. ERROR requires the same words with another number or date, or the denial of
    the claim. Anything else is INCONCLUSIVE, as is a sentence that is hedged, doubted by an adjacent sentence, or
    contradicted by another one.
    """
    try:
        claim, context = bounded_text(claim, "claim", MAX_CLAIM), bounded_text(context, "context", MAX_CONTEXT)
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error))
    except ValueError as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, str(error))
    if re.search(r"[^\W\d_]", claim) and not re.search(r"[A-Za-z]", claim):
        return _verbatim(claim, context)
    if context.isupper() and not claim.isupper() and not (
        set(re.findall(r"[^\W\d_]+", claim.lower())) & _CASE_MATTERS - {
            "it", "a", "is", "in", "i", "or", "so", "as", "no", "am", "an"}):
        context = _recased(context, claim)  # which has the same length, so that positions remain
    claim = _recased(claim, context)
    wanted = statement(claim)
    if len(wanted.core) < 2 or not any(t.kind == "word" for t in wanted.core) or claim.rstrip().endswith("?"):
        return Verdict(Status.INCONCLUSIVE, ENGINE, "the claim is not understood", {"claim": claim[:200]})
    return _conclude(wanted, _answers(wanted, context))


def _recased(claim: str, context: str) -> str:
    """Return the claim. If it is written in one case throughout, its words are spelt as in the context."""
    words = re.findall(r"[^\W\d_]+", claim)
    if len(words) < 3 or not (claim.islower() or claim.isupper() or all(w[0].isupper() for w in words)):
        return claim
    spellings: dict[str, set[str]] = {}
    beside: dict[tuple[str, str], set[str]] = {}  # spellings of a word by the word before it
    previous = ""
    for word in re.findall(r"[^\W\d_]+", context):
        spellings.setdefault(word.lower(), set()).add(word)
        beside.setdefault((previous, word.lower()), set()).add(word)
        previous = word.lower()
    before = dict(zip(
        (m.start() for m in re.finditer(r"[^\W\d_]+", claim)), ["", *(w.lower() for w in words)], strict=False))

    def spelt(match: re.Match[str]) -> str:
        lower = match[0].lower()
        if lower in _CASE_MATTERS and match[0] not in spellings.get(lower, ()):
            return match[0] if claim.islower() else lower
        found = beside.get((before[match.start()], lower)) or spellings.get(lower, {lower})
        return next(iter(found)) if len(found) == 1 else match[0] if match[0] in found else lower

    return re.sub(r"[^\W\d_]+", spelt, claim)


def _answers(wanted: Statement, context: str) -> list[tuple[str, str, int]]:
    """Return the sentences about a claim: the kind (supports, opposite, number, date, hedged or doubted), the
    sentence, its position."""
    found: list[tuple[str, str, int]] = []
    given = [s for _, s in zip(range(MAX_SENTENCES), sentences(context), strict=False)]
    retracted = any(_ABOUT_THE_TEXT.search(s) and _DOUBT.search(s) for _, s in given)
    company = _only_company([s for _, s in given]) if _is_generic(wanted) else None
    for i, (start, sentence) in enumerate(given):
        if sentence.endswith(("?", "？")):
            continue
        answers = [a for clause in clauses(sentence) if (a := _compare(wanted, statement(clause), company))]
        if not answers:  # these clauses can support a claim but not refute it
            answers = [
                a for c in asserted(sentence)
                if (a := _compare(wanted, statement(c), company)) in ("supports", "hedged")]
        if not answers:
            continue
        beside = [s for _, s in given[max(0, i - 1) : i + 2] if s != sentence]
        doubted = retracted or any(RETRACTED.match(s) for s in beside) or _DOUBT.search(sentence) or any(
            _DOUBT.search(s) for s in beside) or (i and given[i - 1][1].endswith(":"))
        found.append(("doubted" if doubted else answers[0], sentence, start))
    return found


def _conclude(wanted: Statement, answers: list[tuple[str, str, int]]) -> Verdict:
    kinds = {kind.split(" ")[0] for kind, _, _ in answers}
    refuting = [a for a in answers if a[0].split(" ")[0] in ("opposite", "number", "date")]
    supporting = [a for a in answers if a[0] == "supports"]
    if supporting and refuting:
        evidence = {"supports": supporting[0][1], "says_otherwise": refuting[0][1]}
        return Verdict(Status.INCONCLUSIVE, ENGINE, "the context contradicts itself", evidence)
    if supporting:
        return Verdict(
            Status.VERIFIED, ENGINE, "a sentence of the context says every part of the claim",
            _evidence(wanted, *supporting[0][1:])
        )
    if refuting:
        kind, sentence, start = refuting[0]
        what = {
            "opposite": "the opposite",
            "number": f"the number is {kind.partition(' ')[2]}",
            "date": f"the date is {kind.partition(' ')[2]}",
        }
        evidence = {**_evidence(wanted, sentence, start), "counterexample": sentence}
        return Verdict(Status.ERROR, ENGINE, f"the context says otherwise: {what[kind.split(' ')[0]]}", evidence)
    if kinds:
        message = (
            "the context only supposes it" if "hedged" in kinds else "what stands beside the sentence puts it in doubt")
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, {"span": answers[0][1]})
    parts = [t.text for t in wanted.core]
    return Verdict(
        Status.INCONCLUSIVE, ENGINE, "no sentence of the context says all parts of the claim in their order",
        {"parts": parts})


def _evidence(wanted: Statement, sentence: str, start: int) -> dict[str, Any]:
    parts = [t.text for t in wanted.core] + [" ".join(t.text for t in a) for a in wanted.adjuncts]
    return {"span": sentence, "start": start, "end": start + len(sentence), "parts": parts, "method": METHOD}


def _is_generic(wanted: Statement) -> bool:
    return len(wanted.core) > 1 and wanted.core[0].text.lower() == "the" and wanted.core[1].text in _GENERIC


def _named(core: list[Token]) -> int:
    """Return the number of tokens of the name at the beginning of a sentence."""
    length = 0
    while length < len(core) and core[length].capital:
        length += 1
    return length


def _only_company(given: list[str]) -> str | None:
    """Return the name that is the subject of all sentences with a name as subject, or None if there are several."""
    names = {
        " ".join(t.text for t in without_suffixes(core)[: _named(without_suffixes(core))])
        for s in given
        if _named(core := statement(s).core)
    }
    names -= {"It", "The", "They", "Its", "This", "A", "An", ""}
    return next(iter(names)) if len(names) == 1 else None


def _compare(wanted: Statement, given: Statement, company: str | None) -> str:
    """Compare a clause with a claim. Return "" if the clause neither supports nor contradicts it."""
    mine, theirs = wanted.core, given.core
    if len(without_suffixes(mine)) == len(mine):
        theirs = without_suffixes(theirs)
    if company is not None and (length := _named(theirs)) and " ".join(t.text for t in theirs[:length]) == company:
        theirs = mine[:2] + theirs[length:]
    theirs = _without_support(mine, theirs, given.denied)
    if given.denied != wanted.denied:
        mine = _without_support(theirs, mine, wanted.denied)
    if len(mine) != len(theirs):
        return ""
    different = [(a, b) for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if not same(a, b, i == 0)]
    missing = [a for a in wanted.adjuncts if not any(_covers(a, b) for b in given.adjuncts)]
    extra = len(given.adjuncts) > len(wanted.adjuncts)
    if extra and (given.denied or not given.past):
        return ""  # a denial for one place and time does not apply elsewhere
    if not different and not missing:
        if given.hedged != wanted.hedged:
            return "hedged"
        return "supports" if given.denied == wanted.denied else "opposite"
    if given.hedged or wanted.hedged or given.denied or wanted.denied:
        return ""
    if not missing and len(different) == 1 and _numbers_differ(*different[0]) and not (extra and _has_time(given)):
        return f"number {different[0][1].text}"
    if not different and len(missing) == 1 and (other := _other_date(missing[0], given)) and any(
        t.text in _ONCE for t in theirs):
        return f"date {other}"
    return ""


def _without_support(plain: list[Token], core: list[Token], denied: bool) -> list[Token]:
    """Replace `did grow` of a denial by `grew` if the other side has that verb in another form."""
    for i, token in enumerate(core[:-1]):
        if denied and token.text in ("did", "does", "do") and i < len(plain) and _same_verb(
            core[i + 1].text, plain[i].text):
            return [*core[:i], plain[i], *core[i + 2 :]]
    return core


_IRREGULAR = {
    "grow": "grew", "rise": "rose", "fall": "fell", "buy": "bought", "sell": "sold", "begin": "began", "win": "won",
    "lose": "lost", "take": "took", "make": "made", "pay": "paid"}  # fmt: skip


def _same_verb(base: str, form: str) -> bool:
    stem = base.removesuffix("e")
    return form in (
        base,
        base + "s",
        base + "es",
        stem + "ed",
        base + base[-1:] + "ed",
        base[:-1] + "ies",
        base[:-1] + "ied",
        _IRREGULAR.get(base),
    )


def _numbers_differ(a: Token, b: Token) -> bool:
    """Report whether two numbers of one kind have different values; `1.2` and `1.20` do not differ."""
    if a.kind != "number" or b.kind != "number" or a.value.endswith("%") != b.value.endswith("%") or a.currency not in (
        "", b.currency):
        return False
    return float(a.value.rstrip("%")) != float(b.value.rstrip("%"))


def _has_time(given: Statement) -> bool:
    return any(t.kind == "date" or is_year(t) for a in given.adjuncts for t in a)


def _covers(claimed: tuple[Token, ...], given: tuple[Token, ...]) -> bool:
    """Report whether two adjuncts have the same meaning."""
    return len(claimed) == len(given) and all(
        same(a, b, i == 0) for i, (a, b) in enumerate(zip(claimed, given, strict=True)))


def _other_date(claimed: tuple[Token, ...], given: Statement) -> str:
    times = [a for a in given.adjuncts if len(a) == 2 and (a[1].kind == "date" or is_year(a[1]))]
    if len(claimed) == 2 and len(times) == 1 and times[0][1].kind == claimed[1].kind and (
        claimed[1].kind == "date" or is_year(claimed[1])):
        return times[0][1].text if times[0][0].text.lower() == claimed[0].text.lower() and times[0][1].value != claimed[
            1].value else ""
    return ""


def _verbatim(claim: str, context: str) -> Verdict:
    text = unicodedata.normalize("NFC", claim).strip(" .。！!?？")
    at = unicodedata.normalize("NFC", context).find(text)
    if (
        at >= 0
        and not re.search(r"[^\s。．.!！?？\n]", context[max(0, at - 1) : at])
        and context[at + len(text) :].lstrip()[:1] in ("", "。", ".", "!", "！", "\n")
    ):
        return Verdict(
            Status.VERIFIED, ENGINE, "the context has the claim word for word",
            {"span": text, "start": at, "end": at + len(text)}
        )
    return Verdict(
        Status.INCONCLUSIVE,
        ENGINE,
        "claims in this script are compared word for word, and the context does not have it so",
        {"claim": text},
    )
