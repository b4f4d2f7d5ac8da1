"""Verb phrases that share a subject: `sings and dances`, `plays chess or tennis`."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from qwed_new.engines.logic import lexicon

# Verbs that hold of each of several objects. Ann mixes flour and water, but she does not mix flour.
_OF_EACH = frozenset(
    "like love hate know own have want eat drink play speak see visit buy need enjoy prefer fear admire read write "
    "sell grow study teach understand hear help follow watch wear use sing dance".split())

_WITH_OBJECT = frozenset(
    "like love hate know own want need enjoy prefer fear admire see visit help follow watch".split())
_WITHOUT_OBJECT = frozenset(
    "sleep swim laugh cry smile work jump sit stand talk live die come go arrive bark walk travel jog".split())
# Verbs with or without an object: in `cooks and eats fish` the object may belong to both verbs, and the cook cooks
# either way.
_OBJECT_OPTIONAL = frozenset(
    "sing dance eat drink read write cook bake play paint draw drive study teach learn smoke sew knit hunt fish "
    "farm".split())
# Verbs that hold of each of two kinds. Ann has ups and downs, and plays cops and robbers.
_OF_EACH_KIND = frozenset(
    "like love hate eat buy sell need want grow see know fear admire study teach understand own".split())
# Verbs that hold of each of two persons. Ann and Bob may lift a piano together.
DISTRIBUTIVE = _WITHOUT_OBJECT | _WITH_OBJECT | frozenset(
    "sing dance eat drink read write smoke study learn believe speak have".split())
# Verbs with which `sings a song` means `sings`, and `sings` means `sings something`.
OBJECT_IS_SOMETHING = _OBJECT_OPTIONAL - {"drink", "smoke", "play", "draw"}


class Coordinated(NamedTuple):
    """Two verb phrases and what joins them: AND or OR. If shared is not empty, it is the first one in another
    reading."""

    head: str
    first: list[str]
    second: list[str]
    shared: list[str] = []  # noqa: RUF012  a tuple's default that is never changed


def coordinated(words: list[str], verbs: Collection[str], names: Collection[str]) -> Coordinated | None:
    """Return the verb phrases of words that begin with a full verb, or None if they are one phrase."""
    joints = [i for i, w in enumerate(words) if w in ("and", "or")]
    if len(joints) != 1 or not 0 < joints[0] < len(words) - 1 or set(words) & {"not", "either", "both"}:
        return None
    at = joints[0]
    head, first, second = words[at].replace("and", "AND").replace("or", "OR"), words[:at], words[at + 1 :]
    if not _is_verb(second[0], first[0], verbs, names, alone=len(second) == 1) or (len(first) > 1 and len(second) == 1):
        if len(first) < 2 or set(second) & (lexicon.STRANGE | lexicon.PRONOUNS) or len(second) > 2:
            return None
        each = len(first) == 2 and len(second) == 1 and (
            (lexicon.base_form(first[0]) in _OF_EACH and {first[1], *second} <= set(names))
            or (lexicon.base_form(first[0]) in _OF_EACH_KIND and all(
                w.endswith("s") and lexicon.is_plural(w) for w in (first[1], second[0]))))
        if "to" in first or (head == "AND" and not each):  # gin and tonic, rock and roll
            return None
        return Coordinated(head, first, [first[0], *second])  # the verb has two objects
    if len(first) == 1 and len(second) > 1 and not _is_alone(first[0]):  # one object of both: hates and fears Bob
        if {lexicon.base_form(first[0]), lexicon.base_form(second[0])} <= _WITH_OBJECT:
            return Coordinated(head, [*first, *second[1:]], second)
        optional = lexicon.base_form(first[0]) in _OBJECT_OPTIONAL and second[1] not in lexicon.PREPOSITIONS
        return Coordinated(head, first, second, [*first, *second[1:]]) if optional else None
    return Coordinated(head, first, second)


def _is_alone(verb: str) -> bool:
    """Report whether a verb has no object."""
    base = lexicon.PASTS.get(verb, verb[:-2] if lexicon.is_past(verb) else lexicon.base_form(verb))
    return base in _WITHOUT_OBJECT


def _is_verb(word: str, like: str, verbs: Collection[str], names: Collection[str], alone: bool) -> bool:
    """Report whether a word is a verb in the form of another one. `dogs` in `sings and dogs bark` is not known."""
    if word in names or word in lexicon.STRANGE or word in lexicon.PREPOSITIONS:
        return False
    known = alone or lexicon.base_form(word) in _OF_EACH or lexicon.base_form(word) in verbs
    if lexicon.is_past(like):
        return lexicon.is_past(word)
    third = like.endswith("s") and lexicon.base_form(like) != like
    return known and (word.endswith("s") and lexicon.base_form(word) != word) == third
