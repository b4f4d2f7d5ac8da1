"""Statements in a small, fixed English, and their Z3 terms.

What the grammar does not know stays one proposition, named by its normalised text; two
texts are the same proposition only when they are equal. So nothing follows by resemblance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import z3

from qwed_new.engines.logic.dsl import Atom, Form, LogicSyntaxError, Tree, parse
from qwed_new.engines.logic.infix import parse_infix
from qwed_new.engines.logic.sorts import Sorts
from qwed_new.engines.logic.terms import Compiler, _apply, divides_by_quantified, divisors
from qwed_new.limits import bounded_text

MAX_TEXT = 5_000
_CONNECTIVES = frozenset({"AND", "OR", "NOT", "IMPLIES", "IFF", "XOR"})
_OWN = frozenset({"PRED", "ALL", "SOME", "PROP"})

_IRREGULAR = {"men": "man", "women": "woman", "people": "person", "children": "child", "mice": "mouse", "geese": "goose", "feet": "foot",
              "wolves": "wolf", "knives": "knife", "lives": "life", "fish": "fish", "sheep": "sheep", "oxen": "ox", "criteria": "criterion"}  # fmt: skip

_SPLITS: tuple[tuple[str, str], ...] = (  # first match wins: the pattern and what its groups make
    (r"^if (.+?),? then (.+)$", "IMPLIES"),
    (r"^if ([^,]+), (.+)$", "IMPLIES"),
    (r"^(.+?),? (?:if and only if|exactly when|iff|is equivalent to) (.+)$", "IFF"),
    (r"^(.+?) (?:implies that|implies|entails that|entails) (.+)$", "IMPLIES"),
    (r"^(.+?),? only if (.+)$", "IMPLIES"),
    (r"^unless (.+?), (.+)$", "OR"),
    (r"^(.+?),? unless (.+)$", "OR"),
    (r"^(?:whenever|when) (.+?), (.+)$", "IMPLIES"),
    (r"^(.+?),? (?:if|whenever|when) (.+)$", "CONVERSE"),
    (r"^neither (.+?) nor (.+)$", "NOR"),
    (r"^(?:either )?(.+?),? or (?:else )?(.+)$", "OR"),
    (r"^(?:both )?(.+?),? (?:and|but) (?:also )?(.+)$", "AND"),
    (r"^(?:it is not the case that|it is false that|it is not true that|not) (.+)$", "NOT"),
    (r"^(?:it is the case that|it is true that|it holds that) (.+)$", "SAME"),
)
# What English leaves open, and what to write instead.
_TWO_READINGS = (
    (
        re.compile(r"^(?:all|every|each|any) .+? (?:are|is|can|must|may|will|should|has|have) not "),
        "'all … are not …' may mean none or not all: write 'no … are …' or 'not all … are …'",
    ),
    (
        re.compile(r"^it is (?:not the case|false|not true) that .+ (?:and|or|if|unless) "),
        "what is denied, one statement or both, is not clear: write a statement for each, or (NOT (AND p q))",
    ),
    (
        re.compile(r"^not \w+ \w+.* (?:and|or) "),
        "what is denied, one statement or both, is not clear: write a statement for each, or (NOT (AND p q))",
    ),
    (
        re.compile(r"^(?!if |either |neither |both ).+ (?:and .+ or|or .+ and) "),
        "'and' and 'or' stand together without parentheses: write (OR p (AND q r))",
    ),
    (
        re.compile(r"^(?:a|an) .+? (?:is|was|has) (?!(?:not )?an? )"),
        "'a man is …' may mean one or all: write 'some man is …' or 'all men are …'",
    ),
)
_NOT_ALL = re.compile(r"^not (?:all|every) (.+)$")
_ALL = re.compile(r"^(?:all|every|each|any) (?:of the )?(.+?) (?:are|is) (not )?(.+)$")
_ALL_VERB = re.compile(r"^(?:all|every|each|any) (\w+) (can|must|may|will|should|has|have) (not )?(.+)$")
_NO = re.compile(r"^no (.+?) (?:are|is) (.+)$")
_NO_VERB = re.compile(r"^no (\w+) (can|must|may|will|should|has|have) (.+)$")
_ONLY = re.compile(r"^only (.+?) (?:are|is) (.+)$")
_SOME = re.compile(
    r"^(?:some|at least one|there (?:is|exists) (?:a|an|some)|there are) (.+?) (?:are|is|that is|that are|who is|who are) (not )?(.+)$"
)
_IS = re.compile(r"^(.+?) (is|are|was|were|am) (not )?(.+)$")
_VERB = re.compile(r"^(\w+(?: \w+)?) (can|must|may|will|should|has|have) (not )?(.+)$")
_DOES_NOT = re.compile(r"^(.+?) (?:does|do|did) not (\w+)(.*)$")


class Statements:
    """Reads statements that share their propositions, and compiles them together."""

    def __init__(self) -> None:
        self._spelt: dict[str, str] = {}
        self.propositions: list[str] = []

    def read(self, text: str) -> Tree:
        """The tree of one statement."""
        text = bounded_text(text, "statement", MAX_TEXT).strip()
        if not text:
            raise LogicSyntaxError("a statement is empty")
        if text.startswith("(") and (tree := _quietly(parse, text)) and not isinstance(tree, Atom):
            if isinstance(tree, Form):
                return tree
        if tree := _quietly(parse_infix, text):
            self._one_spelling(text)
            return tree
        return self._english(_normalise(text), 0)

    def _one_spelling(self, formula: str) -> None:
        """LogicSyntaxError for names of formulas that differ in capitals only: they may be meant to be one or two."""
        for name in re.findall(r"[^\W\d]\w*", formula):
            if self._spelt.setdefault(name.lower(), name) != name:
                raise LogicSyntaxError(f"{self._spelt[name.lower()]!r} and {name!r} differ in capitals only: write one name one way")

    def _english(self, text: str, depth: int) -> Tree:
        if depth > 40:
            raise LogicSyntaxError("a statement is nested too deep")
        for pattern, advice in _TWO_READINGS:
            if pattern.search(text):
                raise LogicSyntaxError(advice)
        if match := _NOT_ALL.match(text):
            return Form("NOT", (self._english("all " + match[1], depth + 1),))
        for pattern, head in _SPLITS:
            if match := re.match(pattern, text):
                parts = [g.strip(" ,") for g in match.groups()]
                if head in ("AND", "OR") and _has_no_verb(parts[0]) and re.search(r"\b(?:are|were|have)\b", parts[1]):
                    raise LogicSyntaxError("what is said of several together may not hold of each: write a statement for each")
                return self._joined(head, [self._english(p, depth + 1) for p in parts])
        return self._simple(text)

    def _joined(self, head: str, parts: list[Tree]) -> Tree:
        if head == "SAME":
            return parts[0]
        if head == "CONVERSE":
            return Form("IMPLIES", (parts[1], parts[0]))
        if head == "NOR":
            return Form("AND", tuple(Form("NOT", (p,)) for p in parts))
        return Form(head, tuple(parts))

    def _simple(self, text: str) -> Tree:
        if match := _ALL.match(text):
            return _quantified("ALL", match[1], match[3], bool(match[2]))
        if match := _ALL_VERB.match(text):
            return _quantified("ALL", match[1], f"{_verb(match[2])} {match[4]}", bool(match[3]))
        if match := _NO.match(text):
            return _quantified("ALL", match[1], match[2], True)
        if match := _NO_VERB.match(text):
            return _quantified("ALL", match[1], f"{_verb(match[2])} {match[3]}", True)
        if match := _ONLY.match(text):
            return _quantified("ALL", match[2], match[1], False)
        if match := _SOME.match(text):
            return _quantified("SOME", match[1], match[3], bool(match[2]))
        if match := _DOES_NOT.match(text):
            verb = match[2] if match[1].endswith(("they", "we", "you", "i")) else _third_person(match[2])
            return Form("NOT", (self._proposition(f"{match[1]} {verb}{match[3]}"),))
        if match := _IS.match(text):
            predicate = f"{match[2]} {match[4]}" if match[2] in ("was", "were") else match[4]  # what was is not what is
            return _negated(_predicate(predicate.replace("were ", "was ", 1), match[1]), bool(match[3]))
        if match := _VERB.match(text):
            return _negated(_predicate(f"{_verb(match[2])} {match[4]}", match[1]), bool(match[3]))
        if tree := _quietly(parse_infix, text):
            return tree
        return self._proposition(text)

    def _proposition(self, text: str) -> Tree:
        if symbols := re.findall(r"[^\w\s'.,%$€£°:-]", text):
            raise LogicSyntaxError(f"{symbols[0]!r} in {text[:60]!r}")
        return Form("PROP", (Atom(text),))

    def compile(self, trees: Sequence[Tree], numbers: str) -> tuple[list[Any], list[Any], bool]:
        """The Z3 terms of statements that were read here, that their divisors are not zero, and whether a sort was only assumed to be `numbers`."""
        sorts = Sorts(numbers)
        for tree in trees:
            _infer(tree, sorts)
        compiler = Compiler(sorts)
        entity = z3.DeclareSort("Entity")
        terms = [_term(tree, compiler, entity, self.propositions) for tree in trees]
        if any(divides_by_quantified(t) for t in trees):
            raise LogicSyntaxError("division by a quantified variable is not decided: it has no value where that is zero")
        nonzero = [compiler.compile(d) != 0 for t in trees for d in divisors(t)]
        self.propositions = sorted(set(self.propositions) | set(compiler.variables))
        return terms, nonzero, sorts.assumed


def _term(tree: Tree, compiler: Compiler, entity: Any, seen: list[str]) -> Any:
    if isinstance(tree, Form) and tree.head in _CONNECTIVES:
        return _apply(tree.head, [_term(a, compiler, entity, seen) for a in tree.arguments])
    if isinstance(tree, Form) and tree.head in _OWN:
        words = [a.text for a in tree.arguments if isinstance(a, Atom)]
        if tree.head == "PROP":
            seen.append(words[0])
            return z3.Bool(words[0])
        if tree.head == "PRED":
            seen.append(f"{words[0]}({words[1]})")
            return _holds(words[0], z3.Const(words[1], entity), entity)
        some = z3.FreshConst(entity, "x")
        subject, predicate = _holds(words[0], some, entity), _holds(words[1], some, entity)
        if words[2] == "not":
            predicate = z3.Not(predicate)
        seen.extend(words[:2])
        return z3.ForAll([some], z3.Implies(subject, predicate)) if tree.head == "ALL" else z3.Exists([some], z3.And(subject, predicate))
    return compiler.compile(tree)


def _holds(predicate: str, subject: Any, entity: Any) -> Any:
    return z3.Function("is " + predicate, entity, z3.BoolSort())(subject)


def _infer(tree: Tree, sorts: Sorts) -> None:
    if isinstance(tree, Form) and tree.head in _CONNECTIVES:
        for argument in tree.arguments:
            _infer(argument, sorts)
    elif not (isinstance(tree, Form) and tree.head in _OWN):
        sorts.infer(tree)


def _has_no_verb(text: str) -> bool:
    return not any(p.match(text) for p in (_IS, _VERB, _DOES_NOT))


def _quietly(read: Any, text: str) -> Tree | None:
    try:
        return read(text)
    except LogicSyntaxError:
        return None


def _normalise(text: str) -> str:
    text = re.sub(r"[’‘`]", "'", text.lower())
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text)
    text = re.sub(r"\bwon't\b", "will not", text)
    text = re.sub(r"n't\b", " not", text)
    text = re.sub(r"^(?:therefore|thus|hence|so|consequently),? ", "", text.strip())
    return " ".join(text.rstrip(" .!;").split())


def _quantified(head: str, subject: str, predicate: str, negated: bool) -> Tree:
    return Form(head, (Atom(noun(subject)), Atom(noun(predicate)), Atom("not" if negated else "")))


def _predicate(predicate: str, subject: str) -> Tree:
    if re.match(r"(?:a|an) ", subject):
        return _quantified("ALL", subject, predicate, False)
    return Form("PRED", (Atom(noun(predicate)), Atom(noun(subject))))


def _negated(tree: Tree, negated: bool) -> Tree:
    if negated and isinstance(tree, Form) and tree.head == "ALL":
        return Form("ALL", (*tree.arguments[:2], Atom("not")))
    return Form("NOT", (tree,)) if negated else tree


def noun(phrase: str) -> str:
    """A noun phrase without its article and in the singular."""
    phrase = re.sub(r"^(?:a|an|the) ", "", phrase.strip())
    *rest, last = phrase.split(" ")
    return " ".join([*rest, _singular(last)])


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if re.search(r"(?:sses|xes|ches|shes|zes)$", word):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "ous")):
        return word[:-1]
    return word


def _verb(verb: str) -> str:
    return "have" if verb == "has" else verb


def _third_person(verb: str) -> str:
    if re.search(r"(?:s|x|ch|sh|o)$", verb):
        return verb + "es"
    return verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + "s"
