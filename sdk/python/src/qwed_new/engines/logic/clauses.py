"""Clauses of the small English: a noun phrase and a verb phrase, read into a formula over people and things.

Quantifiers, names, adjectives, nouns, verbs with an object and comparisons have a structure; any other clause is one
proposition that is named by its text.
"""

from __future__ import annotations

import re

from qwed_new.engines.logic import lexicon
from qwed_new.engines.logic.comparisons import NotRead, Phrase, both, denied, form
from qwed_new.engines.logic.coordination import DISTRIBUTIVE
from qwed_new.engines.logic.dsl import Atom, LogicSyntaxError, Tree
from qwed_new.engines.logic.modifiers import RELATIVES, modified, object_relative
from qwed_new.engines.logic.predicates import AUXILIARY, BODY, POSSESSIVE, THING, UNIVERSAL, Predicates

_PLACE = r"(?:in|on|at|under|near|behind)"
_SUBJECTS = frozenset("he she it they this that i you we".split())
_AFTER_VERBS = lexicon.PREPOSITIONS | {"a", "an", "the", "every", "all", "some", "no"}
_POSSESSIVES = frozenset("my your our".split())
_UNIVERSAL_SUBJECT = r"(?:all|every|each|no|everyone|everything|nobody|nothing)"
_EXCEPT = r"(?:except(?: for)?|apart from|other than|besides|but)"
_EXCEPTED = re.compile(rf"^({_UNIVERSAL_SUBJECT}(?: [\w-]+){{0,4}}?) {_EXCEPT} (.+)$")
_EXCEPTED_LAST = re.compile(rf"^({_UNIVERSAL_SUBJECT} .+?),? {_EXCEPT} ([\w ,-]+)$")


class Clauses(Predicates):
    """Reads clauses of an argument; `names` are the words that are written with a capital letter."""

    def read(self, text: str) -> Tree:
        """Return the formula of a clause, or raise NotRead."""
        text = re.sub(r"^no one\b", "nobody", text)
        if excepted := self._with_exception(text):
            return excepted
        if match := re.match(r"^there is (someone|something|nobody|nothing) (?:who|that) (.+)$", text):
            return self.read(f"{match[1]} {match[2]}")
        if match := re.match(r"^there (?:is|are) no (\w+) (?:that|who|which) (.+)$", text):
            return self._all(self._noun(match[1]), denied(self._verb_phrase(match[2].split())))
        if match := re.match(rf"^there (?:is|are) (an?|some|no|at least one) (\w+) ({_PLACE} .+)$", text):
            inside = self._complement(match[3].split(), "")
            return self._quantify("NO" if match[1] == "no" else "SOME", self._noun(match[2]), inside)
        if match := re.match(r"^there (?:is|are) no (\w+)$|^no (\w+) exists?$|^(\w+) do not exist$", text):
            return self._all(self._noun(match[1] or match[2] or match[3]), lambda x: form("NOT", form("THING", x)))
        if (match := re.match(r"^(?:(?:some|at least one) )?(\w+) exists?$", text)) and match[1] not in self.names and (
            text.startswith(("some ", "at ")) or lexicon.is_plural(match[1])):
            return self._some(self._noun(match[1]), lambda x: form("THING", x))
        if match := re.match(
            r"^there (?:is|exists) (?:an?|some|at least one) (\w+)$|^there are (?:some )?(\w+)$", text):
            return self._some(self._noun(match[1] or match[2]), lambda x: form("THING", x))
        if match := re.match(r"^there (?:is|exists) (?:a|an|some|at least one) (.+)$|^there are (?:some )?(.+)$", text):
            noun, _, rest = (match[1] or match[2]).partition(" that ")
            if not rest:
                noun, _, rest = (match[1] or match[2]).partition(" who ")
            if not rest:
                raise NotRead(f"'there is' without `that …` in {text[:60]!r}")
            return self._some(self._noun(noun), self._verb_phrase(rest.split()))
        words = text.split()
        if len(words) < 2:
            raise NotRead(f"{text[:60]!r}")
        if words[:2] == ["no", "one"]:
            words[:2] = ["nobody"]
        if words[:3] == ["not", "a", "single"]:
            words[:3] = ["no"]
        if words[:3] == ["at", "least", "one"]:
            words[:3] = ["some"]
        if words[0] == "none" and words[1:3] == ["of", "the"]:
            words[:3] = ["no"]
        if words[0] in UNIVERSAL | {"some", "no"} and words[1:3] == ["of", "the"]:
            words[1:3] = []
        if words[0] in UNIVERSAL | {"some", "none"} and words[1] == "of" and words[2:3] and words[2] in _POSSESSIVES:
            words[:2] = ["no" if words[0] == "none" else words[0]]
        if words[0] == "all" and words[1] == "the":
            words[1:2] = []
        return self._sentence(words)

    def _with_exception(self, text: str) -> Tree | None:
        """Read `all birds except penguins fly`: the others fly, and in one reading penguins do not. Return None for
        other clauses."""
        parts = self._before_verb(text) or _after_verb(text)
        if parts is None:
            return None
        subject, excepted, rest = parts
        if "not" in rest[:2] or set(excepted) & (AUXILIARY | lexicon.STRANGE - {"and"}):
            raise NotRead(f"'except' before {' '.join(rest or excepted)[:60]!r}")
        exception = self._excepted(excepted)
        words = ["everyone", *rest] if subject == ["all"] else [*subject, *rest]
        others, all_of = self._narrowed(words, denied(exception)), subject[0] not in ("no", "nobody", "nothing")
        opposite = [{"no": "all", "nobody": "everyone", "nothing": "everything"}.get(words[0], "no"), *words[1:]]
        opposite[0] = {"everyone": "nobody", "everything": "nothing"}.get(words[0], opposite[0]) if all_of else (
            opposite[0])
        return form("EITHER", others, form("AND", others, self._narrowed(opposite, exception)), text)

    def _before_verb(self, text: str) -> tuple[list[str], list[str], list[str]] | None:
        """Return the quantified subject, what is excepted, and the verb phrase of `all birds except penguins fly`."""
        match = _EXCEPTED.match(text)
        if match is None or set(match[1].split()) & AUXILIARY or " " not in match[2]:
            return None
        words = match[2].split()
        named = next((i for i, w in enumerate(words) if w != "and" and not self._is_one(w)), len(words))
        if not named and words[0] == "the" and len(words) > 2:
            named = 2
        if named:
            return match[1].split(), words[:named], words[named:]
        noun, rest = self._split_noun(words, plural=True)
        return match[1].split(), noun.split(), rest

    def _is_one(self, word: str) -> bool:
        """Report whether a word is a name, and not the plural of one, as `Fords`."""
        return word in self.names and not (
            lexicon.is_plural(word) and lexicon.singular(word) in self.names | self.vocabulary)

    def _excepted(self, words: list[str]) -> Phrase:
        """Return the predicate of what `except` names: names, a definite thing, or a kind."""
        parts = [p.split() for p in re.split(r",? and |, ", " ".join(words))]
        if all(self._is_one(p[0]) or p[0] == "the" for p in parts):
            self.others = True
            things = [self._constant(p) for p in parts]
            equal = [lambda x, t=t: form("IS", x, t) for t in things]
            return equal[0] if len(equal) == 1 else lambda x: form("OR", *(e(x) for e in equal))
        return self._noun(" ".join(words))

    def _narrowed(self, words: list[str], narrower: Phrase) -> Tree:
        """Read a sentence with a quantifier over the things that have one more property."""
        kept, self._narrower = self._narrower, narrower
        try:
            return self.read(" ".join(words))
        finally:
            self._narrower = kept

    def _sentence(self, words: list[str]) -> Tree:
        first = words[0]
        if first in BODY or first in THING:
            return self._indefinite(words)
        if first in UNIVERSAL or first in ("no", "some"):
            return self._determined(words)
        if first == "only":
            return self._only(words[1:])
        if words[1] in ("who", "that") and lexicon.is_plural(first):
            return self._determined(["all", *words])
        if first in lexicon.STRANGE or first in lexicon.PRONOUNS - _SUBJECTS:
            raise NotRead(f"{first!r}")
        return self._plain(words)

    def _indefinite(self, words: list[str]) -> Tree:
        kind, narrower, self._narrower = BODY.get(words[0]) or THING[words[0]], self._narrower, None
        restriction: Phrase = (lambda x: form("PRED", "someone", x)) if words[0] in BODY else (
            lambda x: form("THING", x))
        rest = words[1:]
        if placed := self._placed(words):
            inside, rest = placed
            restriction = both(restriction, inside)
        elif parts := modified(words, AUXILIARY):
            if len(parts.noun) > 1:
                raise NotRead(f"{' '.join(parts.noun[1:])!r} after {words[0]!r}")
            restriction = both(restriction, self._complement(parts.modifier, _tense(parts.modifier, parts.rest)))
            rest = parts.rest
        else:
            if words[0] in THING and len(rest) > 1 and rest[1] in lexicon.COPULAS and rest[0] not in (
                lexicon.STRANGE | AUXILIARY):  # nothing red is cheap
                restriction, rest = self._complement(rest[:1], ""), rest[1:]
            restriction, rest = self._related(restriction, rest)
        self._no_denial(kind, rest)
        return self._quantify(kind, both(restriction, narrower) if narrower else restriction, self._verb_phrase(rest))

    def _placed(self, words: list[str]) -> tuple[Phrase, list[str]] | None:
        """Return the place in `everything on the table belongs to Ann`, and the words behind it, which begin with a
        full verb; None for other words."""
        if not re.fullmatch(_PLACE, words[1]) or set(words) & AUXILIARY:
            return None
        start = 3 if words[2:3] and words[2] not in {"the", "a", "an", *_POSSESSIVES} else 4
        if len(words) <= start or not words[start].endswith("s"):
            return None
        return self._complement(words[1:start], ""), words[start:]

    def _related(self, restriction: Phrase, rest: list[str]) -> tuple[Phrase, list[str]]:
        """Return a restriction with the relative clause that rest may begin with, and the words behind it."""
        if not rest or rest[0] not in RELATIVES:
            return restriction, rest
        if parts := object_relative(rest, self.names):
            if not parts.rest or not (parts.rest[0] in AUXILIARY or parts.rest[0].endswith(("s", "ed"))):
                raise NotRead(f"the verb behind {' '.join(rest)[:60]!r}")
            subject = self._constant(parts.subject)
            return both(restriction, lambda x: form("REL", parts.verb, subject, x)), parts.rest
        if rest[0] == "whom":
            raise NotRead("'whom'")
        inner, rest = self._relative(rest[1:])
        return both(restriction, inner), rest

    def _determined(self, words: list[str]) -> Tree:
        kind, narrower, self._narrower = {"no": "NO", "some": "SOME"}.get(words[0], "ALL"), self._narrower, None
        if len(words) > 4 and (placed := self._placed(words[1:])):
            inside, rest = placed
            restriction = both(self._noun(words[1]), inside)
        elif parts := modified(words[1:], AUXILIARY):
            restriction = both(
                self._noun(" ".join(parts.noun)), self._complement(parts.modifier, _tense(parts.modifier, parts.rest)))
            rest = parts.rest
        else:
            noun, rest = _of_a_whole(words[1:]) or self._split_noun(
                words[1:], plural=words[0] not in ("every", "each"))
            restriction, rest = self._related(self._noun(noun), rest)
        self._no_denial(kind, rest)
        return self._quantify(kind, both(restriction, narrower) if narrower else restriction, self._verb_phrase(rest))

    def _no_denial(self, kind: str, rest: list[str]) -> None:
        if kind in ("ALL", "NO") and "not" in rest[:2]:
            raise LogicSyntaxError(
                "'all … are not …' may mean none or not all: write 'no … are …' or 'not all … are …'"
                if kind == "ALL"
                else "'no … not …' denies twice: write 'all … are …'"
            )

    def _only(self, words: list[str]) -> Tree:
        if words[0] in self.names and not lexicon.is_plural(words[0]) and len(words) > 1:
            name, phrase = self._constant(words[:1]), self._verb_phrase(words[1:])
            self.others = True
            others = self._all(
                lambda x: form("AND", form("PRED", "someone", x), phrase(x)), lambda x: form("IS", x, name))
            return form("EITHER", others, form("AND", others, phrase(name)), f"only {' '.join(words)}")
        noun, rest = self._split_noun(words, plural=True)
        return self._all(self._verb_phrase(rest), self._noun(noun))

    def _split_noun(self, words: list[str], plural: bool) -> tuple[str, list[str]]:
        """Return the noun with which words begin, and the rest, which begins with a verb or a relative pronoun."""
        if _is_class(words):
            return " ".join(words[:2]), words[2:]
        strange, end = "", min(len(words), 4)
        for i in range(1, min(len(words), 6)):
            word = words[i]
            if word in AUXILIARY or word in RELATIVES:
                return " ".join(words[:i]), words[i:]
            if word in lexicon.PREPOSITIONS | (lexicon.STRANGE - {"and", "or"}):
                strange, end = f"{word!r} after {' '.join(words[:i])!r}", i
                break
        for i in range(1, end):
            if words[i - 1] in _POSSESSIVES:
                continue
            if plural and lexicon.is_plural(words[i - 1]) and words[i] not in ("and", "or"):
                return " ".join(words[:i]), words[i:]
            if words[i].endswith("s") and not words[i].endswith(("ss", "us", "is")) and not lexicon.is_plural(
                words[i - 1]):
                return " ".join(words[:i]), words[i:]
            if self._is_past_verb(words, i):
                return " ".join(words[:i]), words[i:]
        raise NotRead(strange or f"the verb in {' '.join(words)[:60]!r}")

    def _is_past_verb(self, words: list[str], i: int) -> bool:
        """Report whether a word is a verb in the past, by its form and by the word behind it."""
        after = words[i + 1] if i + 1 < len(words) else ""
        return words[i] in lexicon.PASTS or (lexicon.is_past(words[i]) and (
            not after or after in _AFTER_VERBS or after in self.names))

    def _relative(self, words: list[str]) -> tuple[Phrase, list[str]]:
        """Return the phrase of a relative clause, and the words of the main clause after it."""
        if len(words) == 2 and not set(words) & (lexicon.STRANGE | AUXILIARY):  # students who cheat fail
            return self._verb_phrase(words[:1]), words[1:]
        starts = [
            i for i in range(1, len(words)) if words[i] in AUXILIARY and not (i == 1 and words[0] in lexicon.MODALS)]
        starts += [i for i in range(1, len(words)) if words[i].endswith("s") and words[i] not in AUXILIARY]
        starts += [i for i in range(1, len(words)) if words[i] in self.verbs or self._is_past_verb(words, i)]
        for i in starts:
            if words[i - 1] in ("not", "a", "an", "the") or words[i - 1] in AUXILIARY:
                continue
            try:
                return self._verb_phrase(words[:i]), words[i:]
            except LogicSyntaxError:
                continue
        raise NotRead(f"the clause {' '.join(words)[:60]!r}")

    def _plain(self, words: list[str]) -> Tree:
        """A clause about a name, a definite thing, or, in the plural without an article, about all of a kind."""
        if _is_class(words):
            self.kinds.add(f"the {words[1]}")
            return self._all(
                both(lambda x: form("PRED", "someone", x), self._noun(words[1])), self._verb_phrase(words[2:]))
        for i in range(1, len(words)):
            if words[i] in ("who", "that", "which") and words[0] == "the":
                break
            if words[i] in AUXILIARY:
                return self._about(words[:i], words[i:])
        if words[0] == "the" and len(words) > 5 and (parts := object_relative(words[2:], self.names)) and parts.rest:
            return self._about(words[: -len(parts.rest)], parts.rest)
        if words[0] == "the" and len(words) > 5 and words[2] in ("who", "that", "which"):
            _, rest = self._relative(words[3:])
            return self._verb_phrase(rest)(Atom(" ".join(words[: len(words) - len(rest)])))
        if words[0] in {"the", *_POSSESSIVES} and len(words) > 2 and lexicon.is_plural(words[1]) and (
            words[2].isalpha() and not words[2].endswith("s") and words[2] not in (
                lexicon.STRANGE | lexicon.PREPOSITIONS | AUXILIARY) and not lexicon.is_past(words[2])):
            return self._about(words[:2], words[2:])  # the children leave
        named = next((i for i, w in enumerate(words) if w not in self.names), len(words))
        if 1 <= named < min(len(words), 4) and lexicon.is_past(words[named]):
            return self._about(words[:named], words[named:])
        if len(words) > 2 and self._is_kind_with_verb(words):
            return self._generic(words[:1], self._verb_phrase(words[1:]))
        for i in range(1, min(len(words), 6 if words[0] == "the" else 4)):
            after = words[i]
            if after in lexicon.STRANGE:
                raise NotRead(f"{after!r}")
            if after in self.names or (words[0] == "the" and (words[i - 1] in lexicon.PREPOSITIONS)):
                continue
            plural = lexicon.is_plural(words[i - 1]) and words[i - 1] not in self.names
            if after.endswith("s") and not after.endswith(("ss", "us", "is")) and not plural:
                return self._about(words[:i], words[i:])
        if words[0] in ("i", "you", "we", "they") and words[1] not in lexicon.STRANGE:
            return self._about(words[:1], words[1:])
        if words[0] == "the" and len(words) > 2 and self._is_past_verb(words, 2):
            return self._about(words[:2], words[2:])
        if lexicon.is_plural(words[0]) and words[1].isalpha() and not words[1].endswith(("s", "ed")) and (
            not words[1].endswith("ly") or len(words) == 2) and (
            words[1] not in {*lexicon.PREPOSITIONS, *lexicon.PASTS}):
            return self._generic(words[:1], self._verb_phrase(words[1:]))
        raise NotRead(f"the verb in {' '.join(words)[:60]!r}")

    def _is_kind_with_verb(self, words: list[str]) -> bool:
        """Report whether words such as `dogs chase cats` are a kind, a verb in the plural and a kind."""
        verb, following = words[1], words[2]
        known = lexicon.STRANGE | lexicon.PREPOSITIONS | lexicon.HEADS | self.names | set(lexicon.PASTS)
        kinds = all(w.isalpha() and lexicon.is_plural(w) for w in (words[0], following)) and following.endswith("s")
        return kinds and verb.isalpha() and not verb.endswith(("s", "ed", "ly", "ing")) and verb not in known

    def _generic(self, subject: list[str], phrase: Phrase) -> Tree:
        self.kinds.add(" ".join([*subject[:-1], lexicon.singular(subject[-1])]))
        return self._all(self._noun(" ".join(subject)), phrase)

    def _about(self, subject: list[str], rest: list[str]) -> Tree:
        if re.match(r"^(?:a|an) ", " ".join(subject)):
            if rest[:2] == ["is", "not"] and rest[2:3] in (["a"], ["an"]):
                return self._all(self._noun(" ".join(subject[1:])), denied(self._complement(rest[2:], "")))
            if rest[0] not in ("is", "are") or rest[1:2] not in (["a"], ["an"]):
                raise LogicSyntaxError("'a man is …' may mean one or all: write 'some man is …' or 'all men are …'")
            return self._all(self._noun(" ".join(subject[1:])), self._verb_phrase(rest))
        generic = lexicon.is_plural(subject[-1]) and subject[0] not in ("the", "these", "those") and rest[0] in (
            "are", "can", "have", "do")
        if generic and "and" in subject and set(rest) & lexicon.OF_SEVERAL:
            raise NotRead(f"{rest[-1]!r}, which may hold of several together")
        if generic and set(rest) & lexicon.OF_KINDS:
            raise NotRead(f"{rest[-1]!r}, which may be about the kind as a whole")
        if generic and not POSSESSIVE.match(" ".join(subject)) and subject[0] not in self.names - {subject[0]}:
            if rest[0] != "are" and "not" in rest[:2]:
                return self._generic(subject, denied(
                    self._verb_phrase(rest[2:] if rest[0] == "do" else [rest[0], *rest[2:]])))
            return self._generic(subject, self._verb_phrase(rest))
        if subject == ["it"] and not set(rest) & lexicon.WEATHER:
            self.pronouns.add("it")
        return self._verb_phrase(rest)(self._constant(subject))

    def conditional(self, kind: str, noun: str, first: str, second: str) -> Tree:
        """Read `if someone … he …`, which is about everyone."""
        restriction = self._noun(noun) if noun else (
            lambda x: form("PRED" if kind else "THING", *(["someone", x] if kind else [x])))
        condition, result = self._verb_phrase(first.split()), self._verb_phrase(second.split())
        return self._all(lambda x: form("AND", restriction(x), condition(x)), result)


def _of_a_whole(words: list[str]) -> tuple[str, list[str]] | None:
    """Return the noun of `members of the team are tall`, and the words behind it."""
    if len(words) > 4 and words[1] == "of" and words[2] in ("the", "my", "your", "our") and words[4] in (
        AUXILIARY - {"not"}):
        return " ".join([lexicon.singular(words[0]), *words[1:4]]), words[4:]
    return None


def _tense(modifier: list[str], verb_phrase: list[str]) -> str:
    """Return the tense that a modifier of a subject has: everyone at the party was drunk, anyone born in May is old."""
    return "was " if modifier[0] == "born" or verb_phrase[:1] in (["was"], ["were"]) else ""


def _after_verb(text: str) -> tuple[list[str], list[str], list[str]] | None:
    """Return the parts of `everyone came except Tom`, in which the verb phrase belongs to the subject."""
    match = _EXCEPTED_LAST.match(text)
    return (match[1].split(), match[2].split(), []) if match else None


def _is_class(words: list[str]) -> bool:
    """Report whether a clause begins with an adjective as a noun, with a verb in the plural: the brave are rewarded."""
    if len(words) < 3 or words[0] != "the" or lexicon.is_plural(words[1]):
        return False
    if words[2] in ("are", "have", "do", "were"):
        return words[1] in lexicon.ADJECTIVES
    if words[2] in lexicon.MODALS or words[1] not in lexicon.CLASSES:
        return words[1] in lexicon.CLASSES
    if words[2] in lexicon.HEADS | AUXILIARY | lexicon.PREPOSITIONS or words[2].endswith("s"):
        return False
    return len(words) == 3 or words[2] in DISTRIBUTIVE or words[3] in _AFTER_VERBS - lexicon.PREPOSITIONS
