"""Decide whether a text discloses that a machine wrote it: a clause states it, without denying or merely supposing
it."""

from __future__ import annotations

import re

from qwed_new.plain_text import plain

_DISCLOSURE = re.compile(
    r"\b(?:ai|a\.i\.|machine|llm|model)[- ](?:generated|produced|assisted|written|drafted)\b"
    r"|\b(?:generated|produced|created|written|drafted|prepared|composed)\s+"
    r"(?:by|using|with(?:\s+the\s+(?:help|assistance)\s+of)?)\s+"
    r"(?:an?\s+)?(?:ai|artificial\s+intelligence|llm|(?:large\s+)?language\s+model|machine|chatgpt|gpt-\d\w*)\b",
    re.I,
)
# `AI-generated` before a noun is a disclosure if the noun is the text itself, or a part of it.
_OF_THE_TEXT = re.compile(
    r"(?:^[\W_]*|\b(?:this|the following|following|these|is|are|was|been|be|contains?|includes?|has|have|notice"
    r"|disclosure|disclaimer|warning|note|partly|partially|largely|mostly|fully|entirely|wholly|automatically|an?|and"
    r"|as|with)[ :]*)$", re.I)
# `AI-generated content must be labelled` is about all such content.
_OF_ALL = re.compile(
    r"\s+\w+\s+(?:must|should|shall|can|will|means?|looks?|is|are|has|have|was|were|requires?|needs?|works?|differs?"
    r"|raises?|poses?)\b", re.I)
_ACTIVE = re.compile(r"\s+(?:\d|(?:the|an?|its|more|many|most|some|all|new)\b)", re.I)  # AI generated 5 million jobs
_NOT_NOW = re.compile(r"\bnon[- ]?$|\b(?:formerly|previously|originally|once|initially)\b[^,;]*$", re.I)
_DENIED = re.compile(
    r"\b(?:not|cannot|no|never|may|might|perhaps|possibly|maybe|presumably|supposedly|reportedly|none|nothing|nobody"
    r"|neither|nor|without|zero|false|falsely|untrue|incorrect|wrong|myth|hardly|barely|scarcely|den(?:y|ies|ied)"
    r"|refus\w+|prohibit\w*|forbid\w*|forbidden|banned|exclud\w+|avoid\w*|lacks?|absence|free (?:of|from)|other than"
    r"|rather than|instead of|unlike|except|anything but|far from|pretend\w*|if|whether|unless"
    r"|(?:were|had) (?:this|it|the)"
    r"|would|could|should|imagine|suppose|doubt\w*|(?:claim|sa(?:y|id)|alleg|joke|detect|spot|discuss|cover|mistake"
    r"|believ|think|thought)\w*|polic(?:y|ies)|laws?|about|other|another|his|her|their|means|definition|opposing"
    r"|opponents?|competitors?|rivals?|previous|earlier|prior|plaintiffs?|defendants?|someone|somebody|anyone|others"
    r"|report(?:s|ing)?\s+(?:ai|machine)[- ]\w+)\b"
    r"|[\"“][^\"”]*[\"”] (?:is a (?:term|word|phrase)|means|refers|shall)\b"
    r"|n't\b|\b0\s*%",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_CLAUSE = re.compile(r"\s*[,;:—–()]\s*|\s+(?:and|but|so|although|though|because|as|which)\s+", re.I)
# A clause that begins so has its subject, or its denial, in the clause before.
_CONTINUES = re.compile(
    r"(?:that|was|were|is|are|has|have|had|been|being|be|generated|produced|created|written|drafted|prepared|by|which"
    r"|it)\b", re.I
)
_OPEN = re.compile(r"\b(?:not|never|no|in any (?:way|form|sense))$", re.I)  # the clause goes on after an insertion
_ANSWER_NO = re.compile(
    r"(?:no|none|false|never|0|n/a|not at all|not applicable|untrue|not true|nope)\b[^.]{0,12}[.!]?$", re.I)


def is_disclosed(content: str) -> bool:
    """Report whether a clause of a text states that a machine produced it."""
    sentences = [s.strip() for s in _SENTENCE.split(plain(content).replace("’", "'")) if s.strip()]
    for i, sentence in enumerate(sentences):
        following = sentences[i + 1] if i + 1 < len(sentences) else ""
        if sentence.endswith(("?", "？")) or _ANSWER_NO.match(following):
            continue
        if _states(sentence):
            return True
    return False


def _states(sentence: str) -> bool:
    sentence = re.sub(r"\b(anything|nothing) but\b", r"not \1", sentence, flags=re.I)
    clauses = [c for c in _CLAUSE.split(sentence.rstrip(".!。！")) if c]
    whole = ""
    for i, clause in enumerate(clauses):
        whole = f"{whole} {clause}" if whole and (_CONTINUES.match(clause) or _OPEN.search(whole)) else clause
        if not _discloses(clause) or _DENIED.search(whole):
            continue
        following = clauses[i + 1] if i + 1 < len(clauses) else ""
        if not _ANSWER_NO.match(following) and not _is_denied_later(following):
            return True
    return False


def _discloses(clause: str) -> bool:
    """Report whether a clause says of the text itself that a machine produced it, and not of another."""
    for match in _DISCLOSURE.finditer(clause):
        before, after = clause[: match.start()], clause[match.end() :]
        if _ACTIVE.match(after) and "-" not in match[0]:
            continue
        if _NOT_NOW.search(before) or re.match(r"[- ]free\b", after) or (
            not before.strip() and _OF_ALL.match(after)):
            continue
        if "by" in match[0].lower().split() or re.search(r"using|with", match[0], re.I) or _OF_THE_TEXT.search(before):
            return True
    return False


def _is_denied_later(clause: str) -> bool:
    """Report whether a clause without a subject takes back the one before, as in `AI-generated content, was never
    used`."""
    return bool(
        (re.match(r"(?:was|were|is|are|has|have|had)\b", clause, re.I)
        and re.search(r"\b(?:not|never|no)\b|n't\b", clause, re.I))
        or re.match(
            r"(?:(?:that|this|it|which) (?:is|was) )?(?:wrong|false|untrue|incorrect|mistaken|a lie)\b", clause, re.I)
        or re.match(
            r"(?:he|she|they|some|critics|someone) (?:jok|claim|sa(?:y|id)|alleg|believ|th(?:ink|ought))", clause, re.I)
    )
