"""From the trees of statements to Z3 terms: predicates and relations of things, comparisons as numbers,
propositions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from qwed_new.engines.logic import lexicon
from qwed_new.engines.logic.coordination import OBJECT_IS_SOMETHING
from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree
from qwed_new.engines.logic.sorts import Sorts
from qwed_new.engines.logic.terms import Compiler, apply, divides_by_quantified, divisors

CONNECTIVES = frozenset({"AND", "OR", "NOT", "IMPLIES", "IFF", "XOR"})
OWN = frozenset({"PRED", "REL", "IS", "THING", "MORE", "GEQ", "EQUAL", "EVERY", "EXIST", "PROP", "CAUSE"})
INSIDE = "be in"  # the relation of a thing and a named place, which is transitive
MEASURES = frozenset({"MORE", "GEQ", "EQUAL"})
QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?)(?: (\w+))?")
# Kinds of person, so that `everyone` is about them.
_PERSONS = ("person", "man", "woman", "human", "child", "boy", "girl")


@dataclass(slots=True)
class Compiled:
    """The terms of statements; conditions are facts that hold in every model."""

    terms: list[Any]
    conditions: list[Any]
    assumed: bool
    symbols: list[str]


def compile_all(trees: Sequence[Tree], numbers: str, persons: set[str]) -> Compiled:
    """Compile statements over one domain of things; persons are the constants that `everyone` covers."""
    sorts = Sorts(numbers)
    for tree in trees:
        _infer(tree, sorts)
    if any(divides_by_quantified(t) for t in trees):
        raise LogicSyntaxError("division by a quantified variable is not decided: it has no value where that is zero")
    builder = _Builder(Compiler(sorts), _dimensions(trees))
    terms = [builder.term(tree, {}) for tree in trees]
    conditions = [builder.compiler.compile(d) != 0 for t in trees for d in divisors(t)]
    if "someone" in builder.symbols:
        conditions += [builder.holds("someone", builder.constant(p)) for p in sorted(persons)]
        x = z3.FreshConst(builder.entity, "x")
        for kind in (*_PERSONS, *sorted(lexicon.PROFESSIONS & builder.symbols)):
            conditions.append(z3.ForAll([x], z3.Implies(builder.holds(kind, x), builder.holds("someone", x))))
    conditions += builder.known(trees)
    symbols = sorted({s for s in builder.symbols} | set(builder.compiler.variables))
    return Compiled(terms, conditions, sorts.assumed, symbols)


class _Builder:
    def __init__(self, compiler: Compiler, dimensions: dict[str, str]) -> None:
        self.compiler, self._dimensions = compiler, dimensions
        self.entity = z3.DeclareSort("Entity")
        self.symbols: set[str] = set()

    def term(self, tree: Tree, bound: dict[str, Any]) -> Any:
        if not isinstance(tree, Form) or tree.head not in CONNECTIVES | OWN:
            return self.compiler.compile(tree)
        if tree.head in CONNECTIVES:
            return apply(tree.head, [self.term(a, bound) for a in tree.arguments])
        if tree.head in ("EVERY", "EXIST"):
            variable, body = tree.arguments
            made = z3.FreshConst(self.entity, "x")
            inner = self.term(body, {**bound, variable.text: made})  # type: ignore[union-attr]
            return z3.ForAll([made], inner) if tree.head == "EVERY" else z3.Exists([made], inner)
        words = [a.text for a in tree.arguments if isinstance(a, Atom)]
        if tree.head == "CAUSE":
            return z3.Bool(words[0])
        if tree.head == "PROP":
            self.symbols.add(words[0])
            return z3.Bool(words[0])
        if tree.head == "THING":
            return z3.BoolVal(True)
        if tree.head == "PRED":
            return self.holds(words[0], self._thing(words[1], bound))
        left, right = (self._thing(w, bound) for w in words[-2:])
        if tree.head == "IS":
            return left == right
        self.symbols.add(words[0])
        if tree.head == "REL":
            return z3.Function("rel " + words[0], self.entity, self.entity, z3.BoolSort())(left, right)
        measure = z3.Function("how " + self._dimensions.get(words[0], words[0]), self.entity, z3.RealSort())
        difference = measure(left) - measure(right)
        return {"MORE": difference > 0, "GEQ": difference >= 0, "EQUAL": difference == 0}[tree.head]

    def known(self, trees: Sequence[Tree]) -> list[Any]:
        """Return what holds without a premise: numerals are numbers, and what is in Rome is where Rome is."""
        facts = []
        things = {t for tree in trees for kind, t in _words(tree) if kind == "thing"}
        for text in {t for t in things if re.fullmatch(r"-?\d+(\.\d+)?", t)}:
            kinds = {"number", *(() if "." in text else ("integer", "whole number"))} & self.symbols
            facts += [self.holds(kind, self.constant(text)) for kind in sorted(kinds)]
        facts += self._quantities(trees)
        for verb in sorted(_with_and_without_object(trees)):
            x, y = z3.FreshConst(self.entity, "x"), z3.FreshConst(self.entity, "x")
            relation = z3.Function("rel " + verb, self.entity, self.entity, z3.BoolSort())
            facts.append(z3.ForAll([x], self.holds(verb, x) == z3.Exists([y], relation(x, y))))
        if INSIDE in self.symbols:
            a, b, c = (z3.FreshConst(self.entity, "x") for _ in range(3))
            inside = z3.Function("rel " + INSIDE, self.entity, self.entity, z3.BoolSort())
            facts.append(z3.ForAll([a, b, c], z3.Implies(z3.And(inside(a, b), inside(b, c)), inside(a, c))))
        return facts

    def _quantities(self, trees: Sequence[Tree]) -> list[Any]:
        """Return the measures of `5` and `30 years`: of one unit, they are in the ratio of their numbers."""
        compared = {(f.arguments[0].text, a.text) for t in trees for f in _forms(t)  # type: ignore[union-attr]
            if f.head in MEASURES for a in f.arguments[1:] if isinstance(a, Atom)}
        facts = []
        for dimension, thing in sorted(compared):
            if match := QUANTITY.fullmatch(thing):
                unit = z3.Real("one " + match[2]) if match[2] else z3.RealVal(1)
                measure = z3.Function(
                    "how " + self._dimensions.get(dimension, dimension), self.entity, z3.RealSort())
                facts += [measure(self.constant(thing)) == z3.RealVal(match[1]) * unit, unit > 0]
        return facts

    def holds(self, predicate: str, subject: Any) -> Any:
        self.symbols.add(predicate)
        return z3.Function("is " + predicate, self.entity, z3.BoolSort())(subject)

    def constant(self, name: str) -> Any:
        return z3.Const(name, self.entity)

    def _thing(self, name: str, bound: dict[str, Any]) -> Any:
        return bound[name] if name in bound else self.constant(name)


def _dimensions(trees: Sequence[Tree]) -> dict[str, str]:
    """Return what `shorter` measures: the height if the statements have `taller`, or the length if they have
    `longer`."""
    used = {f.arguments[0].text for t in trees for f in _forms(t)
        if f.head in ("MORE", "GEQ", "EQUAL")}  # type: ignore[union-attr]
    if "short" not in used or not used & {"tall", "long"}:
        return {}
    if {"tall", "long"} <= used:
        raise LogicSyntaxError("'shorter' may be the opposite of 'taller' or of 'longer': write one of them")
    return {"short": "tall" if "tall" in used else "long"}


def _infer(tree: Tree, sorts: Sorts) -> None:
    if isinstance(tree, Form) and tree.head in CONNECTIVES:
        for argument in tree.arguments:
            _infer(argument, sorts)
    elif not (isinstance(tree, Form) and tree.head in OWN):
        sorts.infer(tree)


def _forms(tree: Tree) -> Iterator[Form]:
    if isinstance(tree, Form):
        yield tree
        for argument in tree.arguments:
            yield from _forms(argument)


_KINDS = {"PRED": "predicate", "REL": "verb", "PROP": "clause", "MORE": "measure", "GEQ": "measure", "EQUAL": "measure"}


def _words(tree: Tree) -> set[tuple[str, str]]:
    """Return the phrases in a statement whose meaning is only their text, each with the part that it has in its
    clause."""
    found: set[tuple[str, str]] = set()
    for f in _forms(tree):
        if f.head not in OWN or f.head in ("EVERY", "EXIST", "CAUSE"):
            continue
        texts = [a.text for a in f.arguments if isinstance(a, Atom)]
        if kind := _KINDS.get(f.head):
            found.add((kind, texts.pop(0)))
        found |= {("thing", t) for t in texts if not t.startswith("?")}
    return found


def _with_and_without_object(trees: Sequence[Tree]) -> set[str]:
    """Return the verbs such as `sing` that statements have with an object and without one."""
    words = set().union(*(_words(t) for t in trees))
    return {v for v in OBJECT_IS_SOMETHING for v in (v, "did " + v.removesuffix("e"))
        if {("predicate", v), ("verb", v)} <= words}


def unlike(trees: Sequence[Tree]) -> list[str]:
    """Return pairs of phrases that may be connected by their words, so that a counterexample may ignore the
    connection."""
    phrases = sorted(set().union(*(_words(t) for t in trees)))
    quantities = [m for kind, t in phrases if kind == "thing" and (m := QUANTITY.fullmatch(t))]
    phrases = [(k, t) for k, t in phrases if not (k == "thing" and QUANTITY.fullmatch(t))]
    doubts = []
    if len({m[2] for m in quantities}) > 1:
        doubts.append("how the units of quantities are related is not known")
    if quantities and any(re.search(r"\b(?:integer|number|even|odd|prime|whole)", t) for k, t in phrases):
        doubts.append("which numbers lie between two others is not known")
    linked = _with_and_without_object(trees)
    return doubts + [
        f"{a!r} and {b!r} may be connected" if a != b else f"{a!r} is used in two ways"
        for i, (first, a) in enumerate(phrases)
        for second, b in phrases[i + 1 :]
        if _may_be_connected(first, a, second, b) and not (a == b and a in linked)
    ]


def _may_be_connected(first: str, a: str, second: str, b: str) -> bool:
    if first == second == "thing":
        x, y = lexicon.words_of(a), lexicon.words_of(b)
        return bool(x) and bool(y) and (x <= y or y <= x)
    if first == second == "predicate" and (lexicon.opposite(a) == b or lexicon.opposite(b) == a):
        return False  # see opposites
    if a == "someone" or b == "someone":
        return False
    if any(x.partition(" ")[2] == y and x.split()[0] in lexicon.NUMERALS for x, y in ((a, b), (b, a))):
        return False  # two brothers are brothers
    return a == b or lexicon.related(a, b)


def exist(kinds: Iterable[str]) -> list[Any]:
    """Return that each of some kinds has a member; `the rich` are persons."""
    entity = z3.DeclareSort("Entity")
    x = z3.FreshConst(entity, "x")
    return [z3.Exists([x], z3.And([
        z3.Function("is " + part, entity, z3.BoolSort())(x)
        for part in ([k.removeprefix("the "), "someone"] if k.startswith("the ") else [k])])) for k in sorted(kinds)]


def all_are_persons(trees: Sequence[Tree]) -> list[Any]:
    """Return that everything is what the statements call a person, as a reader assumes of those that they name."""
    entity = z3.DeclareSort("Entity")
    kinds = {text for t in trees for kind, text in _words(t) if kind == "predicate"} & {"person", "human"}
    x = z3.FreshConst(entity, "x")
    return [z3.ForAll([x], z3.Function("is " + k, entity, z3.BoolSort())(x)) for k in sorted(kinds)]


def opposites(trees: Sequence[Tree]) -> list[Any]:
    """Return that a predicate with a negative prefix is the denial of the one without it, as `immortal` is of
    `mortal`."""
    entity = z3.DeclareSort("Entity")
    words = {text for t in trees for kind, text in _words(t) if kind == "predicate"}
    x = z3.FreshConst(entity, "x")
    holds = {w: z3.Function("is " + w, entity, z3.BoolSort())(x) for w in words}
    pairs = [(w, o) for w in sorted(words) if (o := lexicon.opposite(w)) in words]
    return [z3.ForAll([x], holds[a] == z3.Not(holds[b])) for a, b in pairs]
