"""Predicates of the small English: verb phrases, nouns and names, read into formulas about a thing."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count

from qwed_new.engines.logic import first_order, lexicon
from qwed_new.engines.logic.comparisons import Comparisons, NotRead, Phrase, Term, both, denied, form
from qwed_new.engines.logic.coordination import OBJECT_IS_SOMETHING, coordinated
from qwed_new.engines.logic.dsl import Atom, LogicSyntaxError, Tree

UNIVERSAL = frozenset("all every each any".split())
BODY = {"everyone": "ALL", "anyone": "ALL", "nobody": "NO", "someone": "SOME"}
THING = {"everything": "ALL", "anything": "ALL", "nothing": "NO", "something": "SOME"}
AUXILIARY = lexicon.COPULAS | lexicon.MODALS | frozenset("has have had does do did".split())
POSSESSIVE = re.compile(r"^(?:my|your|our|\w+'s?) ")
_POSSESSIVES = frozenset("my your our".split())
_AS_OBJECTS = {"me": "i", "you": "you", "us": "we"}
_PARTICLES = frozenset({"on", "off", "in", "out", "up", "down", "open", "closed"})  # the lamp is on or off
_ARTICLE = re.compile(r"^(?:a|an|the) ")


class Predicates(Comparisons):
    """Reads predicates of an argument; `names` are the words that are written with a capital letter."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.verbs: set[str] = set()  # the base forms of words behind names
        self.vocabulary: set[str] = set()  # the base forms of all words
        self.persons: set[str] = set()
        self.kinds: set[str] = set()  # of generic clauses such as `dogs bark`, which a reader takes to exist
        self.definite: dict[str, Tree] = {}  # that `this book` is a book
        self.others = False  # whether "than everyone" was read as "than everyone else"
        self.identified = False  # whether two names may mean one
        self.pronouns: set[str] = set()
        self._narrower: Phrase | None = None  # also restricts the next quantifier
        self._variables = count(1)

    def _quantify(self, kind: str, restriction: Phrase, phrase: Phrase) -> Tree:
        if kind == "ALL":
            return self._all(restriction, phrase)
        return self._all(restriction, denied(phrase)) if kind == "NO" else self._some(restriction, phrase)

    def _constant(self, words: list[str]) -> Term:
        text = " ".join(words)
        strange = [w for w in words if (w in lexicon.STRANGE and w != "that") or w in AUXILIARY]
        strange += [w for w in words[:1] if w in lexicon.PREPOSITIONS]
        labelled = len(words) == 2 and words[1].isdigit() and words[0].isalpha()  # box 3
        strange += [w for w in words[:2] if len(words) > 1 and not labelled and (
            w in lexicon.QUANTITIES or w.isdigit())]
        if strange or len(words) > 5:
            raise NotRead(f"{(strange or words)[0]!r} in {text[:60]!r}")
        if words[0] in lexicon.PRONOUNS and len(words) == 1 and words[0] != "it":
            self.pronouns.add(words[0])
        if words[0] in ("this", "that", "my", "your", "our") and len(words) == 2:
            self.definite[text] = self._noun(words[1])(Atom(text))
        named = words[0] in self.names and words[0] not in ("the", "a", "an", "it", "this", "that")
        if named or (words[0] in {"the", *_POSSESSIVES} and len(words) == 2 and words[1] in lexicon.PERSONS):
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
        if words[-1] in ("thing", "things", "person", "people") and len(words) == 2:  # red things are all that is red
            adjective, kind = words[0], lexicon.singular(words[1])
            return lambda x: form("PRED", adjective, x) if kind == "thing" else form(
                "AND", form("PRED", adjective, x), form("PRED", kind, x))
        noun, adjectives = lexicon.singular(words[-1]), words[:-1]
        if len(words) == 2 and words[0] in lexicon.NUMERALS and lexicon.is_plural(words[1]):  # two brothers
            return lambda x: form("AND", form("PRED", f"{words[0]} {noun}", x), form("PRED", noun, x))
        name = " ".join([*adjectives, noun])
        if noun in lexicon.HEADS and len(adjectives) == 1 and adjectives[0] in lexicon.INTERSECTIVE:
            return lambda x: form("AND", form("PRED", adjectives[0], x), form("PRED", noun, x))
        if noun in lexicon.HEADS and adjectives and set(adjectives) <= lexicon.SUBSECTIVE:
            return lambda x: form("AND", form("PRED", name, x), form("PRED", noun, x))
        return lambda x: form("PRED", name, x)

    def _verb_phrase(self, words: list[str]) -> Phrase:
        if not words:
            raise NotRead("a clause without a verb")
        first, rest = words[0], words[1:]
        if first not in AUXILIARY - {"has", "have", "had"} and (
            parts := coordinated(words, self.verbs, self.names)):
            phrases = [self._verb_phrase(part) for part in (parts.first, parts.second)]
            if parts.shared:
                other = self._verb_phrase(parts.shared)
                if lexicon.base_form(parts.shared[0]) in OBJECT_IS_SOMETHING:
                    other = both(other, phrases[0])
                return lambda x: form(
                    "EITHER", form(parts.head, *(p(x) for p in phrases)), form(parts.head, other(x), phrases[1](x)),
                    " ".join(words))
            return lambda x: form(parts.head, *(p(x) for p in phrases))
        if first in lexicon.COPULAS:
            tense = "" if first in ("is", "are", "am") else "was "
            if (first == "are" and re.fullmatch(r"[a-z]", rest[-1] if rest else "")
                    and len(rest) == 1 + (rest[0] == "not")):
                kind = lambda x: form("PRED", rest[-1], x)  # all A are B: letters as names of kinds
                return denied(kind) if rest[0] == "not" else kind
            if match := re.fullmatch(r"(not [\w-]+) and (not [\w-]+)", " ".join(rest)):
                return both(*(self._verb_phrase([first, *part.split()]) for part in match.groups()))
            if rest[:1] == ["not"]:
                if re.search(r"\b(?:and|but)\b", " ".join(rest)):
                    raise LogicSyntaxError("what is denied, one or both, is not clear: write a statement for each")
                return denied(self._complement(rest[1:], tense))
            return self._complement(rest, tense)
        if first in lexicon.MODALS:
            if rest[:1] == ["not"]:
                return denied(self._modal(first, rest[1:]))
            return self._modal(first, rest)
        if first == "did" and rest[:1] == ["not"] and len(rest) > 1:
            return denied(self._past(rest[1:]))
        if first in ("does", "do") and rest[:1] == ["not"]:
            return denied(self._verb(rest[1:], ""))
        if rest[:1] == ["not"]:
            raise NotRead(f"'not' after {first!r}")
        return self._past(words) if lexicon.is_past(first) else self._verb([lexicon.base_form(first), *rest], "")

    def _is_agent(self, words: list[str]) -> bool:
        """Report whether words behind `by` name who does it, and not when or how it is done."""
        known = words[0] in self.names or words[0] in {*_AS_OBJECTS, *BODY, *THING} or (
            len(words) > 1 and words[0] in UNIVERSAL | {"a", "an", "the", "no", "some", "my", "your", "our"})
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
        strange = [w for w in words if w in lexicon.STRANGE or w in AUXILIARY]
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
                return both(self._complement(match[1].split(), tense), denied(
                    self._complement(match[2].split()[1:], tense)))
            shared = match[1].split()[0]  # on Monday or Tuesday
            if shared in lexicon.PREPOSITIONS and match[1] not in _PARTICLES and match[2].split()[0] in (
                self.names | {"the"}):
                return self._complement([*words[: words.index(head.lower()) + 1], shared, *match[2].split()], tense)
            if (" and " in match[2] + match[1] and head == "OR") or " or " in match[2] or negated:
                raise LogicSyntaxError("'and' and 'or' stand together without parentheses: write (OR p (AND q r))")
            if head == "OR" and not tense and all(p in self.names for p in match.groups()) and not any(
                lexicon.NATIONALITY.fullmatch(p) for p in match.groups()):
                named = [Atom(p) for p in match.groups()]
                self.identified = True
                return lambda x: form("OR", *(form("IS", x, n) for n in named))
            places = all(p.split()[0] in lexicon.PREPOSITIONS and p not in _PARTICLES for p in match.groups())
            for part in match.groups():
                words = part.split()[1:] if places else part.split()
                clause = words[0] == "the" or (len(words) > 2 and lexicon.is_plural(words[0]))
                if (not places and clause) or any(w in lexicon.PASTS for w in words[1:]):
                    raise NotRead(f"{part!r} beside {match[2]!r}")
                if part in _PARTICLES:
                    continue
                named = not places and words[0] in self.names and not lexicon.NATIONALITY.fullmatch(words[0])
                if named or set(words) & (lexicon.PREPOSITIONS | {"between", "among"}) or len(words) > 3:
                    raise NotRead(f"{part!r} beside {match[2]!r}")
            parts = [self._complement(p.split(), tense) for p in match.groups()]
            return lambda x: form(head, *(p(x) for p in parts))
        if (match := re.match(r"^one of the ((?:(?:two|three|four|five|six|seven|eight|nine|ten) )?\w+)$", text)) and (
            lexicon.is_plural(match[1].split()[-1])) and not tense:
            return self._noun(match[1])
        if (match := re.match(r"^one of ((?:my|your|our) \w+)$", text)) and not tense:
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
        if article and article[0] == "the " and len(words) == 3 and not tense and words[1] in lexicon.SUPERLATIVES:
            return both(self._noun(words[2]), lambda x: form("PRED", text, x))  # the oldest student
        if article and article[0] == "the ":
            described = len(words) > 3 and words[2] in ("who", "that", "which")
            definite = Atom(text if described else self._opaque(words))
            if tense or any(w.endswith("est") for w in words):
                raise NotRead(f"{definite.text!r}")
            self.identified = True
            return lambda x: form("IS", x, definite)
        if article and (match := re.match(r"^(?:a|an) (.+?) (?:who|that|which) (.+)$", text)):
            noun, relative = self._noun(match[1]), self._verb_phrase(match[2].split())
            return lambda x: form("AND", noun(x), relative(x))
        if article and not tense and (match := re.match(
            r"^(?:a|an) (\w+) ((?:in|on|at|under|near|behind) (?:(?:the|my|your|our) )?\w+)$", text)):
            return both(self._noun(match[1]), self._complement(match[2].split(), ""))
        name = self._opaque(_ARTICLE.sub("", text).split())
        *adjectives, noun = name.split()
        if adjectives and not tense and (article or lexicon.is_plural(noun)) and (
            lexicon.singular(noun) in lexicon.HEADS):
            return self._noun(name)
        if (match := re.fullmatch(r"(\w+) of (.+)", name)) and not tense:
            whole = f"{lexicon.singular(match[1])} of {match[2]}"
            return lambda x: form("PRED", whole, x)
        if (match := re.fullmatch(r"\w+'s? (\w+)", name)) and not tense:  # Bob's mother is a mother
            return both(lambda x: form("PRED", name, x), self._noun(match[1]))
        if article or not adjectives:
            name = " ".join([*adjectives, lexicon.singular(noun)])
        return lambda x: form("PRED", tense + name, x)

    def _verb(self, words: list[str], tense: str) -> Phrase:
        verb, rest = words[0], words[1:]
        if verb in lexicon.STRANGE or verb in lexicon.PREPOSITIONS or verb in ("a", "an", "the"):
            raise NotRead(f"{verb!r} as a verb")
        if not rest and lexicon.base_form(verb) == "exist":
            raise NotRead("'exist' after this subject")
        if not rest:
            return lambda x: form("PRED", tense + verb, x)
        if rest[1:2] == ["than"] and len(rest) > 2 and (rest[2] in self.names or rest[2] in {"the", *BODY}):
            dimension, more = ("much", rest[0] == "more") if rest[0] in ("more", "less") else (
                lexicon.COMPARATIVES.get(rest[0], ("", True)))
            if dimension:
                return self._measured("MORE", f"{tense}{verb} {dimension}", more, " ".join(rest[2:]))
        if rest[0] == "as" and rest[2:3] == ["as"] and len(rest) > 3:
            return self._measured(
                "EQUAL", f"{tense}{verb} {lexicon.DIMENSIONS.get(rest[1], rest[1])}", True, " ".join(rest[3:]))
        if rest[0] in ("more", "less", "fewer") and rest[2:3] == ["than"] and len(rest) == 4 and rest[3] in self.names:
            return self._measured("MORE", f"{tense}{verb} {rest[1]} much", rest[0] == "more", rest[3])
        if rest[0] in lexicon.PREPOSITIONS and len(rest) > 1:
            verb, rest = f"{verb} {rest[0]}", rest[1:]
        return self._object(rest, lambda x, y: form("REL", tense + verb, x, y), itself=True)

    def _object(self, words: list[str], relation: Callable[[Term, Term], Tree], itself: bool) -> Phrase:
        """Return the predicate that a relation and its object make."""
        first, text = words[0], " ".join(words)
        if words[:2] == ["no", "one"]:
            words, first = ["nobody", *words[2:]], "nobody"
        if first in BODY or first in THING:
            kind = BODY.get(first) or THING[first]
            restriction: Phrase = (lambda y: form("PRED", "someone", y)) if first in BODY else (
                lambda y: form("THING", y))
            if len(words) == 2 and words[1] not in lexicon.STRANGE | lexicon.PREPOSITIONS | self.names:
                restriction = both(restriction, self._complement(words[1:], ""))  # something fast
            elif len(words) > 1:
                raise NotRead(f"{words[1]!r} after {first!r}")
        elif first in UNIVERSAL | {"no", "some", "a", "an"}:
            kind = {"no": "NO", "some": "SOME", "a": "SOME", "an": "SOME"}.get(first, "ALL")
            restriction = self._noun(" ".join(words[1:]))
        elif first in ("himself", "herself", "itself"):
            return lambda x: relation(x, x)
        elif lexicon.is_plural(words[-1]) and first not in self.names and first != "the" and not POSSESSIVE.match(
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
