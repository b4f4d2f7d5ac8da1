"""The clauses that a sentence asserts in addition to itself: coordinated ones, appositions, relative clauses, and
causes.

A clause is taken from a sentence only if the clause cannot be in the scope of a word such as `that`, `if`, `no` or
`claimed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Words that may deny, suppose, report or quantify what follows or precedes them.
_SCOPE = re.compile(
    r"\b(?:that|if|unless|whether|until|before|neither|nor|either|or|not|no|none|nobody|nothing|never|hardly|barely"
    r"|rarely|seldom|few|little|only|said|says?|saying|claim\w*|believ\w+|think\w*|thought|den(?:y|ies|ied)|doubt\w*"
    r"|hop(?:e|es|ed)|wish\w*|expect\w*|promis\w+|plan(?:s|ned)?|report\w*(?! "
    r"(?:an?|its|revenues?|sales|profits?|losses|earnings|income)\b)|alleg\w+|suggest\w*|argu\w+|assum\w+|suppos\w+"
    r"|pretend\w*|imagin\w+|dream\w*|want\w*|would|could|might|may|should|must|without|unlike|except|instead|rather"
    r"|fail\w*|refus\w+|lied|lies|between|both|each|every|all|most|some|any|than|used|false|untrue)\b|n['’]t\b",
    re.I,
)
_AUXILIARY = r"(?:was|were|is|are|has|have|had|did|does)"
_PRESENT = r"(?:is|are|has|have|does)"
# Past tenses that are not a noun or an adjective, too.
_PAST = (
    r"(?:rose|fell|won|gave|took|went|came|became|began|bought|brought|built|caught|chose|drew|drove|ate|flew|got|grew"
    r"|held|kept|knew|lost|made|met|paid|ran|sold|sent|sang|sat|slept|spoke|spent|stood|stole|swam|taught|threw|wore"
    r"|wrote|wed|sank|shrank)")
_VERB = rf"(?:{_AUXILIARY}\b|(?:{_PAST}|[a-z]+(?:s|ed))\b(?!\s+{_AUXILIARY}\b))"
_NAME = r"(?:[A-Z][\w.&'-]*(?:\s+[A-Z][\w.&'-]*){0,4}|[Tt]he\s+[a-z]+)"
_BARE = re.compile(rf"^[a-z]+s\s+{_PAST}\b")  # profits fell
_SUBJECT = re.compile(rf"^({_NAME})\s+(?={_VERB})")
_APPOSITION = re.compile(rf"^({_NAME}), ((?:(?:the|a|an)\s+)?[^,]+), ({_VERB}.*)$")
_RELATIVE = re.compile(rf"^({_NAME}), (?:who|which) ({_VERB}[^,]*), ({_VERB}.*)$")
_CAUSE = re.compile(r"^(?:[Bb]ecause|[Aa]lthough|[Tt]hough|[Ee]ven though) ([^,]+), ([^,]+)$")
# The cat sat because the floor was cold.
_REASON = re.compile(r"^([^,]+),? (?<!as )(?:because|although|though|even though) ([^,]+)$")
_PASSIVE = re.compile(
    r"^(.*\b(?:was|were) [a-z]+(?:ed|en|t|n|de|ld|ng|id|d)\b[^,]*?) by (?![\d$€£¥])[^,]+?( in \d{4})?$")
_PARTICIPLE = re.compile(
    r"(?:[a-z]+ed|led|built|made|held|won|sung|sold|bought|written|known|run|owned|taken|given)\b (?!by the time)")
_PAST_VERB = rf"(?:was|were|had|did|{_PAST}|[a-z]+ed)\b"
# A second past tense of the same subject. The next word shows that it is not a participle before a noun.
_SECOND_PAST = re.compile(
    rf"(?:{_PAST}|[a-z]+ed) (?:(?:to|in|on|at|into|from|with|by|a|an|the|its|his|her|their)\b|\d|[A-Z$€£¥])")
_JOINED = re.compile(r"(?:,\s*|\s+)(?:and|but|while|whereas)\s+")


def asserted(sentence: str) -> Iterator[str]:
    """Return the clauses that a sentence asserts, without the sentence itself."""
    text = sentence.strip().rstrip(".!")
    if _SCOPE.search(text):
        return
    if match := _CAUSE.match(text):
        yield from match.groups()
        return
    if (match := _REASON.match(text)) and all(_SUBJECT.match(c[:1].upper() + c[1:]) for c in match.groups()):
        yield from match.groups()
        return
    if match := _PASSIVE.match(text):
        yield match[1] + (match[2] or "")
    if match := _RELATIVE.match(text):
        yield f"{match[1]} {match[2]}"
        yield f"{match[1]} {match[3]}"
        return
    if (match := _APPOSITION.match(text)) and not re.search(rf"\b(?:who|which|and|{_AUXILIARY})\b", match[2]):
        yield f"{match[1]} {match[3]}"
        if _PARTICIPLE.match(match[2]):
            yield f"{match[1]} was {match[2]}"
        elif re.match(rf"{_PRESENT}\b|[a-z]+s\b", match[3]):
            yield f"{match[1]} is {match[2]}"
        elif re.match(_PAST_VERB, match[3]):
            yield f"{match[1]} was {match[2]}"
        return
    yield from _coordinated(text)


def _length(clause: str) -> int:
    """Return the number of characters before the verb of a clause."""
    if match := _SUBJECT.match(clause):
        return match.end()
    bare = re.match(rf"[A-Za-z][a-z]+s\s+(?={_PAST})", clause)
    return bare.end() if bare else len(clause)


def _coordinated(text: str) -> Iterator[str]:
    """Return both parts of a sentence that joins two clauses, or two verb phrases of one subject."""
    subject = _SUBJECT.match(text) or _BARE.match(text[:1].lower() + text[1:])
    if subject is None or len(_JOINED.findall(text)) != 1:
        return
    first, second = _JOINED.split(text, maxsplit=1)
    if _SECOND_PAST.match(second) and "," not in first + second and re.match(_PAST_VERB, first[_length(first) :]):
        yield first
        yield f"{first[: _length(first)]}{second}"
        return
    if "," in first or "," in second:
        return
    if re.match(
        rf"{_AUXILIARY}\b|[a-z]+s\s+(?:an?|the|its|his|her|their|in|at|on|for|with|into|through|\d|[a-z]+s\b)", second):
        yield first
        if subject.re is _SUBJECT:
            yield f"{subject[1]} {second}"
    elif _BARE.match(second):
        yield first
        yield second
    elif _SUBJECT.match(second[:1].upper() + second[1:]) and re.match(r"[A-Z]|the\b|[a-z]+\s", second):
        yield first
        yield second
