"""Predicates of things, and those that comparisons make: `taller than Ann`, `as old as Bob`, `above 5`."""

from __future__ import annotations

import re
from collections.abc import Callable

from qwed_new.engines.logic import lexicon
from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree

Term = Atom
Phrase = Callable[[Term], Tree]  # a predicate of a thing


class NotRead(LogicSyntaxError):
    """A clause that the grammar does not read."""


def form(head: str, *arguments: Tree | str) -> Form:
    """Return a form whose texts are atoms."""
    return Form(head, tuple(Atom(a) if isinstance(a, str) else a for a in arguments))


def both(first: Phrase, second: Phrase) -> Phrase:
    """Return the conjunction of two predicates."""
    return lambda x: form("AND", first(x), second(x))


def denied(phrase: Phrase) -> Phrase:
    """Return the denial of a predicate."""
    return lambda x: form("NOT", phrase(x))


class Comparisons:
    """Reads comparisons. A reader of clauses extends it."""

    def _object(self, words: list[str], relation: Callable[[Term, Term], Tree], itself: bool) -> Phrase:
        """Return the predicate that a relation and its object make."""
        raise NotImplementedError

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
        if match := re.match(r"^(above|over|below|under) (-?\d+(?:\.\d+)?)$", text):
            return self._measured("MORE", "big", match[1] in ("above", "over"), match[2])
        if re.search(r"\b(?:than|as)\b", text):
            raise NotRead(f"the comparison {text[:60]!r}")
        return None

    def _measured(self, head: str, dimension: str, more: bool, other: str) -> Phrase:
        if dimension.startswith("-"):
            dimension, more = dimension[1:], not more

        def compare(x: Term, y: Term) -> Tree:
            return form(head, dimension, *((x, y) if more else (y, x)))

        return self._object(other.split(), compare, itself=False)
