"""Clauses of the small English: a noun phrase and a verb phrase, read into a formula over people and things.

Quantifiers, names, adjectives, nouns, verbs with an object and comparisons have a structure; any other clause is one
proposition that is named by its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

from qwed_new.engines.logic import first_order, lexicon
from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree
from qwed_new.engines.logic.modifiers import RELATIVES, modified, object_relative

Term = Atom
Phrase = Callable[[Term], Tree]  # a predicate of a thing

_UNIVERSAL = frozenset("all every each any".split())
_BODY = {"everyone": "ALL", "anyone": "ALL", "nobody": "NO", "someone": "SOME"}
_THING = {"everything": "ALL", "anything": "ALL", "nothing": "NO", "something": "SOME"}
_AUXILIARY = lexicon.COPULAS | lexicon.MODALS | frozenset("has have had does do did".split())
_SUBJECTS = frozenset("he she it they this that i you we".split())
_AS_OBJECTS = {"me": "i", "you": "you", "us": "we"}
_AFTER_VERBS = lexicon.PREPOSITIONS | {"a", "an", "the", "every", "all", "some", "no"}
_ARTICLE = re.compile(r"^(?:a|an|the) ")
_POSSESSIVE = re.compile(r"^(?:my|your|our|\w+'s?) ")


class NotRead(LogicSyntaxError):
    """A clause that the grammar does not read."""


def form(head: str, *arguments: Tree | str) -> Form:
    """Return a form whose texts are atoms."""
    return Form(head, tuple(Atom(a) if isinstance(a, str) else a for a in arguments))


class Clauses:
    """Reads clauses of an argument; `names` are the words that are written with a capital letter."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.verbs: set[str] = set()  # the base forms of words behind names
        self.vocabulary: set[str] = set()  # the base forms of all words
        self.persons: set[str] = set()
        self.kinds: set[str] = set()  # of generic clauses such as `dogs bark`, which a reader takes to exist
        self.others = False  # whether "than everyone" was read as "than everyone else"
        self.identified = False  # whether two names may mean one
        self.pronouns: set[str] = set()
        self._variables = count(1)

    def read(self, text: str) -> Tree:
        """Return the formula of a clause, or raise NotRead."""
        if match := re.match(r"^there is (someone|something|nobody|nothing) (?:who|that) (.+)$", text):
            return self.read(f"{match[1]} {match[2]}")
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
        if words[0] in _UNIVERSAL | {"some", "no"} and words[1:3] == ["of", "the"]:
            words[1:3] = []
        if words[0] == "all" and words[1] == "the":
            words[1:2] = []
        return self._sentence(words)

    def _sentence(self, words: list[str]) -> Tree:
        first = words[0]
        if first in _BODY or first in _THING:
            return self._indefinite(words)
        if first in _UNIVERSAL or first in ("no", "some"):
            return self._determined(words)
        if first == "only":
            return self._only(words[1:])
        if words[1] in ("who", "that") and lexicon.is_plural(first):
            return self._determined(["all", *words])
        if first in lexicon.STRANGE or first in lexicon.PRONOUNS - _SUBJECTS:
            raise NotRead(f"{first!r}")
        return self._plain(words)

    def _quantify(self, kind: str, restriction: Phrase, phrase: Phrase) -> Tree:
        if kind == "ALL":
            return self._all(restriction, phrase)
        return self._all(restriction, _denied(phrase)) if kind == "NO" else self._some(restriction, phrase)

    def _indefinite(self, words: list[str]) -> Tree:
        kind = _BODY.get(words[0]) or _THING[words[0]]
        restriction: Phrase = (lambda x: form("PRED", "someone", x)) if words[0] in _BODY else (
            lambda x: form("THING", x))
        rest = words[1:]
        if parts := modified(words, _AUXILIARY):
            if len(parts.noun) > 1:
                raise NotRead(f"{' '.join(parts.noun[1:])!r} after {words[0]!r}")
            restriction, rest = _both(restriction, self._complement(parts.modifier, "")), parts.rest
        else:
            if words[0] in _THING and len(rest) > 1 and rest[1] in lexicon.COPULAS and rest[0] not in (
                lexicon.STRANGE | _AUXILIARY):  # nothing red is cheap
                restriction, rest = self._complement(rest[:1], ""), rest[1:]
            restriction, rest = self._related(restriction, rest)
        self._no_denial(kind, rest)
        return self._quantify(kind, restriction, self._verb_phrase(rest))

    def _related(self, restriction: Phrase, rest: list[str]) -> tuple[Phrase, list[str]]:
        """Return a restriction with the relative clause that rest may begin with, and the words behind it."""
        if not rest or rest[0] not in RELATIVES:
            return restriction, rest
        if parts := object_relative(rest, self.names):
            if not parts.rest or not (parts.rest[0] in _AUXILIARY or parts.rest[0].endswith(("s", "ed"))):
                raise NotRead(f"the verb behind {' '.join(rest)[:60]!r}")
            subject = self._constant(parts.subject)
            return _both(restriction, lambda x: form("REL", parts.verb, subject, x)), parts.rest
        if rest[0] == "whom":
            raise NotRead("'whom'")
        inner, rest = self._relative(rest[1:])
        return _both(restriction, inner), rest

    def _determined(self, words: list[str]) -> Tree:
        kind = {"no": "NO", "some": "SOME"}.get(words[0], "ALL")
        if parts := modified(words[1:], _AUXILIARY):
            restriction = _both(self._noun(" ".join(parts.noun)), self._complement(parts.modifier, ""))
            rest = parts.rest
        else:
            noun, rest = self._split_noun(words[1:], plural=words[0] not in ("every", "each"))
            restriction, rest = self._related(self._noun(noun), rest)
        self._no_denial(kind, rest)
        return self._quantify(kind, restriction, self._verb_phrase(rest))

    def _no_denial(self, kind: str, rest: list[str]) -> None:
        if kind in ("ALL", "NO") and "not" in rest[:2]:
            raise LogicSyntaxError(
                "'all … are not …' may mean none or not all: write 'no … are …' or 'not all … are …'"
                if kind == "ALL"
                else "'no … not …' denies twice: write 'all … are …'"
            )

    def _only(self, words: list[str]) -> Tree:
        noun, rest = self._split_noun(words, plural=True)
        if words[0] in self.names and not lexicon.is_plural(noun.split()[-1]):
            raise NotRead(f"'only {noun}'")
        return self._all(self._verb_phrase(rest), self._noun(noun))

    def _split_noun(self, words: list[str], plural: bool) -> tuple[str, list[str]]:
        """Return the noun with which words begin, and the rest, which begins with a verb or a relative pronoun."""
        strange, end = "", min(len(words), 4)
        for i in range(1, min(len(words), 6)):
            word = words[i]
            if word in _AUXILIARY or word in RELATIVES:
                return " ".join(words[:i]), words[i:]
            if word in lexicon.PREPOSITIONS:
                raise NotRead(f"{word!r} after {' '.join(words[:i])!r}")
            if word in lexicon.STRANGE - {"and", "or"}:
                strange, end = f"{word!r} after {' '.join(words[:i])!r}", i
                break
        for i in range(1, end):
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
        if len(words) == 2 and not set(words) & (lexicon.STRANGE | _AUXILIARY):  # students who cheat fail
            return self._verb_phrase(words[:1]), words[1:]
        starts = [
            i for i in range(1, len(words)) if words[i] in _AUXILIARY and not (i == 1 and words[0] in lexicon.MODALS)]
        starts += [i for i in range(1, len(words)) if words[i].endswith("s") and words[i] not in _AUXILIARY]
        starts += [i for i in range(1, len(words)) if words[i] in self.verbs or self._is_past_verb(words, i)]
        for i in starts:
            if words[i - 1] in ("not", "a", "an", "the") or words[i - 1] in _AUXILIARY:
                continue
            try:
                return self._verb_phrase(words[:i]), words[i:]
            except LogicSyntaxError:
                continue
        raise NotRead(f"the clause {' '.join(words)[:60]!r}")

    def _plain(self, words: list[str]) -> Tree:
        """A clause about a name, a definite thing, or, in the plural without an article, about all of a kind."""
        for i in range(1, len(words)):
            if words[i] in _AUXILIARY:
                return self._about(words[:i], words[i:])
        if words[0] == "the" and len(words) > 5 and (parts := object_relative(words[2:], self.names)) and parts.rest:
            return self._about(words[: -len(parts.rest)], parts.rest)
        for i in range(1, min(len(words), 6 if words[0] == "the" else 4)):
            after = words[i]
            if after in lexicon.STRANGE:
                raise NotRead(f"{after!r}")
            if after in self.names or (words[0] == "the" and (words[i - 1] in lexicon.PREPOSITIONS)):
                continue
            if after.endswith("s") and not after.endswith(("ss", "us", "is")) and not lexicon.is_plural(words[i - 1]):
                return self._about(words[:i], words[i:])
        if words[0] in ("i", "you", "we", "they") and words[1] not in lexicon.STRANGE:
            return self._about(words[:1], words[1:])
        named = next((i for i, w in enumerate(words) if w not in self.names), len(words))
        if 1 <= named < min(len(words), 4) and lexicon.is_past(words[named]):
            return self._about(words[:named], words[named:])
        if words[0] == "the" and len(words) > 2 and self._is_past_verb(words, 2):
            return self._about(words[:2], words[2:])
        if lexicon.is_plural(words[0]) and words[1].isalpha() and not words[1].endswith(("s", "ed")) and (
            not words[1].endswith("ly") or len(words) == 2) and (
            words[1] not in {*lexicon.PREPOSITIONS, *lexicon.PASTS}):
            return self._generic(words[:1], self._verb_phrase(words[1:]))
        raise NotRead(f"the verb in {' '.join(words)[:60]!r}")

    def _generic(self, subject: list[str], phrase: Phrase) -> Tree:
        self.kinds.add(" ".join([*subject[:-1], lexicon.singular(subject[-1])]))
        return self._all(self._noun(" ".join(subject)), phrase)

    def _about(self, subject: list[str], rest: list[str]) -> Tree:
        if re.match(r"^(?:a|an) ", " ".join(subject)):
            if rest[0] not in ("is", "are") or rest[1:2] not in (["a"], ["an"]):
                raise LogicSyntaxError("'a man is …' may mean one or all: write 'some man is …' or 'all men are …'")
            return self._all(self._noun(" ".join(subject[1:])), self._verb_phrase(rest))
        generic = lexicon.is_plural(subject[-1]) and subject[0] not in ("the", "these", "those") and rest[0] in (
            "are", "can", "have", "do")
        if generic and set(rest) & lexicon.OF_KINDS:
            raise NotRead(f"{rest[-1]!r}, which may be about the kind as a whole")
        if generic and not _POSSESSIVE.match(" ".join(subject)) and subject[0] not in self.names - {subject[0]}:
            if rest[0] != "are" and "not" in rest[:2]:
                return self._generic(subject, _denied(
                    self._verb_phrase(rest[2:] if rest[0] == "do" else [rest[0], *rest[2:]])))
            return self._generic(subject, self._verb_phrase(rest))
        if subject == ["it"] and not set(rest) & lexicon.WEATHER:
            self.pronouns.add("it")
        return self._verb_phrase(rest)(self._constant(subject))

    def _constant(self, words: list[str]) -> Term:
        text = " ".join(words)
        strange = [w for w in words if (w in lexicon.STRANGE and w != "that") or w in _AUXILIARY]
        strange += [w for w in words[:1] if w in lexicon.PREPOSITIONS]
        strange += [w for w in words[:2] if len(words) > 1 and (w in lexicon.QUANTITIES or w.isdigit())]
        if strange or len(words) > 5:
            raise NotRead(f"{(strange or words)[0]!r} in {text[:60]!r}")
        if words[0] in lexicon.PRONOUNS and len(words) == 1 and words[0] != "it":
            self.pronouns.add(words[0])
        if words[0] in self.names and words[0] not in ("the", "a", "an", "it", "this", "that"):
            self.persons.add(text)
        return Atom(text)

    def _noun(self, text: str) -> Phrase:
        """Return the predicate of a noun, or of one of several nouns."""
        parts = re.split(r" (?:and|or) ", text)
        if len(parts) > 1:
            nouns = [self._noun(p) for p in parts]
            return lambda x: form("OR", *(n(x) for n in nouns))
        words = _ARTICLE.sub("", text).split()
        strange = [w for w in words if w in lexicon.STRANGE or w in lexicon.PRONOUNS]
        if not words or strange or len(words) > 4:
            raise NotRead(f"{(strange or words or [text])[0]!r} in {text[:60]!r}")
        if words[-1] in ("thing", "things", "person", "people") and len(words) == 2:  # red things: what is red
            adjective, kind = words[0], lexicon.singular(words[1])
            return lambda x: form("PRED", adjective, x) if kind == "thing" else form(
                "AND", form("PRED", adjective, x), form("PRED", kind, x))
        name = " ".join([*words[:-1], lexicon.singular(words[-1])])
        return lambda x: form("PRED", name, x)

    # Verb phrases

    def _verb_phrase(self, words: list[str]) -> Phrase:
        if not words:
            raise NotRead("a clause without a verb")
        first, rest = words[0], words[1:]
        if first in lexicon.COPULAS:
            tense = "" if first in ("is", "are", "am") else "was "
            if (first == "are" and re.fullmatch(r"[a-z]", rest[-1] if rest else "")
                    and len(rest) == 1 + (rest[0] == "not")):
                kind = lambda x: form("PRED", rest[-1], x)  # all A are B: letters as names of kinds
                return _denied(kind) if rest[0] == "not" else kind
            if rest[:1] == ["not"]:
                if re.search(r"\b(?:and|but)\b", " ".join(rest)):
                    raise LogicSyntaxError("what is denied, one or both, is not clear: write a statement for each")
                return _denied(self._complement(rest[1:], tense))
            return self._complement(rest, tense)
        if first in lexicon.MODALS:
            if rest[:1] == ["not"]:
                return _denied(self._modal(first, rest[1:]))
            return self._modal(first, rest)
        if first == "did" and rest[:1] == ["not"] and len(rest) > 1:
            return _denied(self._past(rest[1:]))
        if first in ("does", "do") and rest[:1] == ["not"]:
            return _denied(self._verb(rest[1:], ""))
        if rest[:1] == ["not"]:
            raise NotRead(f"'not' after {first!r}")
        return self._past(words) if lexicon.is_past(first) else self._verb([lexicon.base_form(first), *rest], "")

    def _is_agent(self, words: list[str]) -> bool:
        """Report whether words behind `by` name who does it, and not when or how it is done."""
        known = words[0] in self.names or words[0] in {*_AS_OBJECTS, *_BODY, *_THING} or (
            len(words) > 1 and words[0] in _UNIVERSAL | {"a", "an", "the", "no", "some", "my", "your", "our"})
        return known and words[-1] not in lexicon.WEATHER | lexicon.TIMES

    def _active(self, participle: str, tense: str) -> str:
        """Return the verb of which `loved` in `is loved by` is the participle, as active clauses have it."""
        base = lexicon.PARTICIPLES.get(participle) or lexicon.PASTS.get(participle, "")
        if not base and not lexicon.is_past(participle):
            raise NotRead(f"{participle!r} before 'by'")
        if tense:
            return lexicon.past(base or participle)
        stems = [participle[:-1], participle[:-2], participle[:-3], participle[:-3] + "y"]
        return base or next((b for b in stems if b in self.vocabulary), stems[0])

    def _past(self, words: list[str]) -> Phrase:
        tense, verb = lexicon.past(words[0]).split(" ")
        return self._verb([verb, *words[1:]], tense + " ")

    def _modal(self, modal: str, words: list[str]) -> Phrase:
        text = self._opaque(words)
        return lambda x: form("PRED", f"{modal} {text}", x)

    def _opaque(self, words: list[str]) -> str:
        strange = [w for w in words if w in lexicon.STRANGE or w in _AUXILIARY]
        if not words or strange:
            raise NotRead(f"{(strange or ['an end'])[0]!r} in {' '.join(words)[:60]!r}")
        return " ".join(words)

    def _complement(self, words: list[str], tense: str) -> Phrase:
        """The predicate after a form of `to be`."""
        text = " ".join(words)
        if re.fullmatch(r"even|divisible by \d+", text):  # of a number
            return lambda x: form("PRED", tense + text, x)
        if (match := re.match(r"^(\w+) by (.+)$", text)) and self._is_agent(match[2].split()):
            verb = self._active(match[1], tense)
            return self._object(match[2].split(), lambda x, y: form("REL", verb, y, x), itself=True)
        if (match := re.match(r"^(\d+(?:\.\d+)?) years old$", text)) and not tense:
            return lambda x: form("EQUAL", "old", x, f"{match[1]} years")
        if compared := self._comparison(text):
            if tense:
                raise NotRead(f"a comparison in the past: {text[:60]!r}")
            return compared
        if match := re.match(r"^(?:either )?(.+?) or (.+)$", text) or re.match(
            r"^(?:both )?(.+?) (?:and|but) (.+)$", text):
            head = "OR" if " or " in match[0] else "AND"
            negated = [w for w in (match[1], match[2]) if w.startswith("not ")]
            if head == "AND" and negated == [match[2]] and not re.search(
                r"\b(?:and|or|but)\b", match[1] + match[2][4:]):
                return _both(self._complement(match[1].split(), tense), _denied(
                    self._complement(match[2].split()[1:], tense)))
            if (" and " in match[2] + match[1] and head == "OR") or " or " in match[2] or negated:
                raise LogicSyntaxError("'and' and 'or' stand together without parentheses: write (OR p (AND q r))")
            if head == "OR" and not tense and all(p in self.names for p in match.groups()) and not any(
                lexicon.NATIONALITY.fullmatch(p) for p in match.groups()):
                named = [Atom(p) for p in match.groups()]
                self.identified = True
                return lambda x: form("OR", *(form("IS", x, n) for n in named))
            places = all(p.split()[0] in lexicon.PREPOSITIONS for p in match.groups())
            for part in match.groups():
                words = part.split()[1:] if places else part.split()
                if (not places and words[0] == "the") or any(w in lexicon.PASTS for w in words[1:]):  # another clause
                    raise NotRead(f"{part!r} beside {match[2]!r}")
                named = not places and words[0] in self.names and not lexicon.NATIONALITY.fullmatch(words[0])
                if named or set(words) & (lexicon.PREPOSITIONS | {"between", "among"}) or len(words) > 3:
                    raise NotRead(f"{part!r} beside {match[2]!r}")
            parts = [self._complement(p.split(), tense) for p in match.groups()]
            return lambda x: form(head, *(p(x) for p in parts))
        if (match := re.match(r"^one of the (\w+)$", text)) and lexicon.is_plural(match[1]) and not tense:
            return self._noun(match[1])
        if len(words) == 2 and words[0] == "in" and words[1] in self.names and not tense:
            place = Atom(words[1])
            return lambda x: form("REL", first_order.INSIDE, x, place)
        article = _ARTICLE.match(text)
        adjective = len(words) == 1 and lexicon.NATIONALITY.fullmatch(text)
        if not article and not adjective and words and words[0] in self.names and not tense and len(words) <= 2 and (
            not lexicon.is_plural(words[-1]) or (len(words) == 2 and words[1] in self.names)):
            other = self._constant(words)
            self.identified = True
            return lambda x: form("IS", x, other)
        if article and article[0] == "the ":
            definite = Atom(self._opaque(words))
            if tense or any(w.endswith("est") for w in words):
                raise NotRead(f"{definite.text!r}")
            self.identified = True
            return lambda x: form("IS", x, definite)
        if article and (match := re.match(r"^(?:a|an) (.+?) (?:who|that|which) (.+)$", text)):
            noun, relative = self._noun(match[1]), self._verb_phrase(match[2].split())
            return lambda x: form("AND", noun(x), relative(x))
        name = self._opaque(_ARTICLE.sub("", text).split())
        if (match := re.fullmatch(r"\w+'s? (\w+)", name)) and not tense:  # Bob's mother is a mother
            return _both(lambda x: form("PRED", name, x), self._noun(match[1]))
        head, *others = name.split(" ")
        name = " ".join([
            *name.split(" ")[:-1], lexicon.singular(name.split(" ")[-1])]) if not others or article else name
        return lambda x: form("PRED", tense + name, x)

    def _comparison(self, text: str) -> Phrase | None:
        if match := re.match(r"^(?:(more|less) (\w+)|(\w+)) than (.+)$", text):
            dimension, more = lexicon.COMPARATIVES.get(match[3] or "", ("", True))
            if match[1]:
                dimension, more = lexicon.DIMENSIONS.get(match[2], ""), match[1] == "more"
            if not dimension:
                raise NotRead(f"{match[3] or match[2]!r} in a comparison")
            return self._measured("MORE", dimension, more, match[4])
        if match := re.match(r"^(at least )?as (\w+) as (.+)$", text):
            dimension = lexicon.DIMENSIONS.get(match[2], "")
            if not dimension:
                raise NotRead(f"{match[2]!r} in a comparison")
            return self._measured("GEQ" if match[1] else "EQUAL", dimension, True, match[3])
        if re.search(r"\b(?:than|as)\b", text):
            raise NotRead(f"the comparison {text[:60]!r}")
        return None

    def _measured(self, head: str, dimension: str, more: bool, other: str) -> Phrase:
        if dimension.startswith("-"):
            dimension, more = dimension[1:], not more

        def compare(x: Term, y: Term) -> Tree:
            return form(head, dimension, *((x, y) if more else (y, x)))

        return self._object(other.split(), compare, itself=False)

    def _verb(self, words: list[str], tense: str) -> Phrase:
        verb, rest = words[0], words[1:]
        if verb in lexicon.STRANGE or verb in lexicon.PREPOSITIONS or verb in ("a", "an", "the"):
            raise NotRead(f"{verb!r} as a verb")
        if not rest and lexicon.base_form(verb) == "exist":
            raise NotRead("'exist' after this subject")
        if not rest:
            return lambda x: form("PRED", tense + verb, x)
        if rest[1:2] == ["than"] and len(rest) > 2 and (rest[2] in self.names or rest[2] in {"the", *_BODY}):
            dimension, more = ("much", rest[0] == "more") if rest[0] in ("more", "less") else (
                lexicon.COMPARATIVES.get(rest[0], ("", True)))
            if dimension:
                return self._measured("MORE", f"{tense}{verb} {dimension}", more, " ".join(rest[2:]))
        if rest[0] in lexicon.PREPOSITIONS and len(rest) > 1:
            verb, rest = f"{verb} {rest[0]}", rest[1:]
        return self._object(rest, lambda x, y: form("REL", tense + verb, x, y), itself=True)

    def _object(self, words: list[str], relation: Callable[[Term, Term], Tree], itself: bool) -> Phrase:
        """Return the predicate that a relation and its object make."""
        first, text = words[0], " ".join(words)
        if words[:2] == ["no", "one"]:
            words, first = ["nobody", *words[2:]], "nobody"
        if first in _BODY or first in _THING:
            if len(words) > 1:
                raise NotRead(f"{words[1]!r} after {first!r}")
            kind = _BODY.get(first) or _THING[first]
            restriction: Phrase = (lambda y: form("PRED", "someone", y)) if first in _BODY else (
                lambda y: form("THING", y))
        elif first in _UNIVERSAL | {"no", "some", "a", "an"}:
            kind = {"no": "NO", "some": "SOME", "a": "SOME", "an": "SOME"}.get(first, "ALL")
            restriction = self._noun(" ".join(words[1:]))
        elif first in ("himself", "herself", "itself"):
            return lambda x: relation(x, x)
        elif lexicon.is_plural(words[-1]) and first not in self.names and first != "the" and not _POSSESSIVE.match(
            text):
            if not itself:
                raise NotRead(f"{text!r} in a comparison")
            name = self._opaque(words)
            verb = relation(Atom("?"), Atom("?")).arguments[0]  # type: ignore[union-attr]
            if verb == Atom("have"):
                noun = self._noun(text)
                return lambda x: self._some(noun, lambda y: relation(x, y))
            return lambda x: form("PRED", f"{verb.text} {name}", x)  # type: ignore[union-attr]
        else:
            if len(words) == 1 and first in _AS_OBJECTS:
                words = [_AS_OBJECTS[first]]
            elif first in lexicon.PRONOUNS:
                raise NotRead(f"{first!r}, which may be anybody")
            verb = relation(Atom("?"), Atom("?")).arguments[0]  # type: ignore[union-attr]
            if verb == Atom("have") and len(words) == 1 and first not in self.names:  # he has money
                noun = self._noun(first)
                return lambda x: self._some(noun, lambda y: relation(x, y))
            other = self._constant(words)
            return lambda x: relation(x, other)
        if not itself and kind == "ALL":
            outer = restriction
            self.others = True
            return lambda x: self._all(
                lambda y: form("AND", outer(y), form("NOT", form("IS", x, y))), lambda y: relation(x, y))
        return lambda x: self._quantify(kind, restriction, lambda y: relation(x, y))

    def _all(self, restriction: Phrase, phrase: Phrase) -> Tree:
        x = Atom(f"?{next(self._variables)}")
        return form("EVERY", x, form("IMPLIES", restriction(x), phrase(x)))

    def _some(self, restriction: Phrase, phrase: Phrase) -> Tree:
        x = Atom(f"?{next(self._variables)}")
        return form("EXIST", x, form("AND", restriction(x), phrase(x)))

    def conditional(self, kind: str, noun: str, first: str, second: str) -> Tree:
        """Read `if someone … he …`, which is about everyone."""
        restriction = self._noun(noun) if noun else (
            lambda x: form("PRED" if kind else "THING", *(["someone", x] if kind else [x])))
        condition, result = self._verb_phrase(first.split()), self._verb_phrase(second.split())
        return self._all(lambda x: form("AND", restriction(x), condition(x)), result)


def _both(first: Phrase, second: Phrase) -> Phrase:
    return lambda x: form("AND", first(x), second(x))


def _denied(phrase: Phrase) -> Phrase:
    return lambda x: form("NOT", phrase(x))
