"""What follows a noun and restricts it: `in the room`, `divisible by 4`, `greater than 2`, `that John knows`."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from qwed_new.engines.logic import lexicon

RELATIVES = ("who", "whom", "that", "which")
_PLACES = lexicon.PREPOSITIONS - {"of", "with", "for", "to", "against", "about"}
_PARTICIPLES = frozenset(
    "made given taken written driven known seen shown grown drawn eaten broken chosen hidden built born".split())


class Modified(NamedTuple):
    """A noun, its restrictions, and the verb phrase behind both."""

    noun: list[str]
    modifier: list[str]
    rest: list[str]


class ObjectRelative(NamedTuple):
    """`that John knows`: its subject, its verb in the base form, and the words behind it."""

    subject: list[str]
    verb: str
    rest: list[str]


def modified(words: list[str], auxiliaries: Collection[str]) -> Modified | None:
    """Return the parts of words such as `number divisible by 4 is even`, or None if no modifier is found."""
    end = next((i for i, w in enumerate(words) if w in auxiliaries), 0)
    before = words[:end]
    if set(before) & {*RELATIVES, "and", "or", "as"} or not end:
        return None
    start = next((i for i, w in enumerate(before) if w in ("than", "by") or w in lexicon.PREPOSITIONS), 0)
    if start and (before[start] == "than" or _takes(before[start - 1], before[start])):
        start -= 2 if before[start] == "than" and before[start - 2] in ("more", "less") else 1
    elif not start or before[start] not in _PLACES:
        return None
    if start < 1 or end - start < 2:
        return None
    return Modified(words[:start], words[start:end], words[end:])


def _takes(word: str, preposition: str) -> bool:
    """Report whether a word is an adjective or a participle that belongs to the preposition behind it."""
    if word in _PARTICIPLES or word.endswith("ible") or (word.endswith("ed") and len(word) > 4):
        return True
    return word.endswith("able") and preposition == "by"


def object_relative(words: list[str], names: Collection[str]) -> ObjectRelative | None:
    """Return the parts of words such as `that john knows are kind`, or None if they are no such clause."""
    if len(words) < 3 or words[0] not in RELATIVES or words[1] not in names:
        return None
    verb, rest = words[2], words[3:]
    written = lexicon.past(verb) if lexicon.is_past(verb) else lexicon.base_form(verb)
    if not lexicon.is_past(verb) and (not verb.endswith("s") or verb in lexicon.COPULAS | {"has", "does"}):
        return None
    if rest and rest[0] in lexicon.PREPOSITIONS:
        return ObjectRelative(words[1:2], f"{written} {rest[0]}", rest[1:])
    return ObjectRelative(words[1:2], written, rest)
