"""Conditions that a claim states for its variables: `… for x >= 0`, `for all positive x, …`, `… if 0 < x < 1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import sympy
from sympy import Expr, Rational

from qwed_new.engines.math import grammar, tree
from qwed_new.engines.math.build import Builder, Undefined
from qwed_new.engines.math.grammar import MathSyntaxError
from qwed_new.engines.math.tree import Apply, Name, Node, Number

_WORD = r"(?:for|if|when|whenever|where|provided(?:\s++that)?|assuming(?:\s++that)?|given(?:\s++that)?)"
_BEHIND = re.compile(rf"^(.+?[\w)\]!%|²³])[,;]?\s++(\(?){_WORD}\s++(.+)$", re.I | re.S)
_BEFORE = re.compile(rf"^\s*{_WORD}\s+(.+)$", re.I | re.S)
_SORTS = {
    "real": (), "rational": None, "complex": None, "positive": (">",), "negative": ("<",), "nonnegative": (">=",),
    "non-negative": (">=",), "nonpositive": ("<=",), "nonzero": ("!=",), "non-zero": ("!=",), "integer": ("whole",),
    "whole": ("whole",), "natural": ("whole", ">="),
}
_SORT = "|".join(sorted(_SORTS, key=len, reverse=True))
_QUANTIFIED = re.compile(
    rf"^(?:(?:all|every|any|each)\s+)?((?:(?:{_SORT})s?\s+)*)(?:(?:numbers?|values?(?:\s+of)?)\s+)?"
    r"([a-z](?:\s*,\s*[a-z])*(?:\s*(?:,|and)\s*[a-z])?)$", re.I)
_IS = re.compile(
    rf"^([a-z](?:\s*(?:,|and)\s*[a-z])*)\s++(?:is|are)?\s*+(?:an?\s++)?((?:(?:{_SORT})s?\s*+)+)(?:numbers?)?$", re.I)
_WITHIN = re.compile(
    r"^([a-z])\s+(?:in|∈)\s+(?:the\s+interval\s+)?([\[(])\s*+([^,\[\]]+),\s*+([^,\[\]]+)([\])])$|"
    r"^([a-z])\s*(?:in|∈)\s*([RℝZℤNℕ])$|^([a-z])\s+between\s+(\S+)\s+and\s+(\S+)$")
_SORTED = re.compile(
    rf"^(?:(?:all|every|any|each)\s+)?((?:(?:{_SORT})s?\s+)*)([a-z])\s*((?:<=|>=|!=|[<>≤≥≠]).+)$", re.I)
_LIST = re.compile(r"^([a-z](?:\s*,\s*[a-z])*)\s*(?:,|\band\b)\s*([a-z])\s*(<=|>=|!=|[<>≤≥≠])(.+)$")
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_ZERO = Number(Decimal(0))


@dataclass(slots=True)
class Given:
    """Conditions of a claim. The zero value has none."""

    relations: list[tuple[Node, str]] = field(default_factory=list)  # a tree and its relation to 0
    whole: set[str] = field(default_factory=set)  # the variables that are whole numbers
    values: dict[str, Node] = field(default_factory=dict)  # of variables, as in `where x = 3`
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.relations or self.whole or self.values)

    def variables(self) -> set[str]:
        """Return the variables that the conditions are about."""
        return self.whole.union(self.values, *(tree.variables(node) for node, _ in self.relations))

    def admits(self, point: dict[str, Any]) -> bool:
        """Report whether a point meets the conditions, as far as that can be computed."""
        if any(getattr(point.get(name, 0), "q", 1) != 1 for name in self.whole):
            return False
        for node, relation in self.relations:
            try:
                value = Builder(point).build(node)
            except Undefined:
                return False
            holds = {">": value > 0, ">=": value >= 0, "<": value < 0, "<=": value <= 0, "!=": value != 0}[relation]
            if holds not in (True, sympy.true):
                return False
        return True

    def points(self, points: Iterable[dict[str, Rational]]) -> Iterator[dict[str, Rational]]:
        """Return the points that meet the conditions, each moved within bounds if it then does."""
        bounds = self._bounds()
        for point in points:
            moved = {name: _moved(value, *bounds.get(name, (None, None)), name in self.whole)
                for name, value in point.items()}
            yield from [p for p in (moved, point) if self.admits(p)][:1]

    def conditions(self, builder: Builder) -> list[tuple[Expr, str]]:
        """Return the conditions as expressions that are > 0, >= 0 or != 0."""
        found = []
        for node, relation in self.relations:
            value = builder.build(node)
            found.append((-value, _MIRROR[relation]) if relation[0] == "<" else (value, relation))
        return found

    def symbols(self) -> dict[str, Expr]:
        """Return an expression for each variable with a bound, whose symbols are assumed to be positive and so on."""
        bounds = self._bounds()
        found: dict[str, Expr] = {}
        for name in sorted(self.variables()):
            assume: dict[str, bool] = {"integer": True} if name in self.whole else {"real": True}
            low, high = bounds.get(name, (None, None))
            if low is None and high is None:
                if any(r == "!=" and node == Name("var:" + name) for node, r in self.relations):
                    assume["nonzero"] = True
                found[name] = sympy.Symbol(name, **assume)
                continue
            end, strict = low or high  # type: ignore[misc]
            assume["positive" if strict else "nonnegative"] = True
            if name in self.whole and end.q != 1:
                assume.pop("integer")
            distance = sympy.Symbol(name, **assume)
            found[name] = end + distance if low else end - distance
        return found

    def _bounds(self) -> dict[str, tuple[Any, Any]]:
        """Return for each variable the pairs of its lower and upper bound, each with whether it is excluded."""
        found: dict[str, list[Any]] = {}
        for node, relation in self.relations:
            if not (isinstance(node, Apply) and node.function == "sub" and relation != "!="):
                continue
            left, right = node.arguments
            if not (isinstance(left, Name) and left.name.startswith("var:")):
                left, right, relation = right, left, _MIRROR[relation]
            if not (isinstance(left, Name) and left.name.startswith("var:")) or tree.variables(right):
                continue
            end = Builder().build(right)
            if isinstance(end, Rational):
                ends = found.setdefault(left.name[4:], [None, None])
                side = 0 if relation[0] == ">" else 1
                if ends[side] is None or (end - ends[side][0]) * (1 if side == 0 else -1) > 0:
                    ends[side] = (end, "=" not in relation)
        return {name: (low, high) for name, (low, high) in found.items()}


def _moved(value: Rational, low: Any, high: Any, whole: bool) -> Rational:
    """Return a value within bounds, which depends on another value only."""
    if whole:
        value = Rational(value.p // value.q)
    if low and high:
        width = high[0] - low[0]
        part = Rational(abs(value.p) % (value.q * 7 + 3), value.q * 7 + 3)
        return low[0] + (sympy.floor(width * part) if whole else width * part)
    if low:
        return value if value > low[0] else low[0] + abs(value - low[0])
    return (value if value < high[0] else high[0] - abs(value - high[0])) if high else value


def separate(text: str) -> tuple[str, Given]:
    """Return a claim without its conditions, and these. Raise MathSyntaxError if they are not understood."""
    if match := _BEFORE.match(text):
        condition, claim = _at_last_comma(match[1])
        claim = re.sub(r"^(?:then|we have|it holds that)\s+", "", claim.strip())
    elif (match := _BEHIND.match(text)) and re.search(r"[=<>≤≥≠≈]", match[1]):
        condition = match[3].rstrip().removesuffix(".").rstrip()
        claim, condition = match[1], condition.removesuffix(")") if match[2] else condition
    else:
        return text, Given()
    given = Given(text=" ".join(condition.split()))
    if listed := _LIST.match(condition.strip()):
        names = [*re.split(r"\s*,\s*", listed[1]), listed[2]]
        parts = [f"{name} {listed[3]} {listed[4]}" for name in names]
    else:
        parts = _parts(condition)
    for part in parts:
        _read(part, given)
    return claim, given


def _parts(condition: str) -> list[str]:
    """Return the conditions that commas and `and` join, outside of brackets, lists of names and intervals."""
    condition = condition.strip()
    if _QUANTIFIED.match(condition) or _IS.match(condition) or _WITHIN.match(condition):
        return [condition]
    parts = re.split(r",\s*(?:and\s+)?(?![^\[(]*[\])])|\s+and\s+|\s*[&∧]\s*", condition)
    return [p for p in (part.strip() for part in parts) if p]


def _at_last_comma(text: str) -> tuple[str, str]:
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        depth += (text[i] in ")]") - (text[i] in "([")
        if text[i] in ",:" and depth == 0:
            return text[:i], text[i + 1 :]
    raise MathSyntaxError("where the condition ends is not clear: write the claim first, as in 'ln(x) < x for x > 0'")


def _read(text: str, given: Given) -> None:
    if match := _QUANTIFIED.match(text):
        _add_sorts(match[1], match[2], given)
    elif match := _IS.match(text):
        _add_sorts(match[2], match[1], given)
    elif match := _WITHIN.match(text):
        _add_interval(match, given)
    elif (match := _SORTED.match(text)) and (match[1] or text[0] != match[2]):
        _add_sorts(match[1], match[2], given)
        _read(match[2] + match[3], given)
    else:
        claim = grammar.parse(text)
        left, *values = claim.sides
        if claim.relations == ("=",) and isinstance(left, Name) and left.name.startswith("var:") and not (
            tree.variables(values[0])):
            given.values[left.name[4:]] = values[0]
            return
        if not claim.relations or not set(claim.relations) <= set(_MIRROR):
            raise MathSyntaxError(f"the condition {text[:40]!r}: write it as in 'for x >= 0'")
        for left, relation, right in zip(claim.sides, claim.relations, claim.sides[1:], strict=False):
            given.relations.append((Apply("sub", (left, right)), relation))


def _add_sorts(sorts: str, names: str, given: Given) -> None:
    for word in sorts.lower().split():
        relations = _SORTS[word if word in _SORTS else word.removesuffix("s")]
        if relations is None:
            raise MathSyntaxError(f"the condition {word!r}: variables are real or whole numbers")
        if word.startswith("natural"):
            raise MathSyntaxError("'natural' may include 0 or not: write 'for integer n >= 0' or 'for integer n >= 1'")
        for name in re.findall(r"\b[a-z]\b", names, re.I):
            for relation in relations:
                if relation == "whole":
                    given.whole.add(name)
                else:
                    given.relations.append((Apply("sub", (Name("var:" + name), _ZERO)), relation))


def _add_interval(match: re.Match[str], given: Given) -> None:
    name = Name("var:" + (match[1] or match[6] or match[8]))
    if match[6]:
        if match[7] in "Nℕ":
            raise MathSyntaxError("'N' may include 0 or not: write 'for integer n >= 0' or 'for integer n >= 1'")
        if match[7] in "Zℤ":
            given.whole.add(match[6])
        return
    low, high, strict = (match[3], match[4], (match[2] == "(", match[5] == ")")) if match[1] else (
        match[9], match[10], (False, False))
    for end, relation, is_strict in ((low, ">", strict[0]), (high, "<", strict[1])):
        if end.strip() not in ("oo", "-oo", "∞", "-∞"):
            bound = grammar.parse_expression(end)
            given.relations.append((Apply("sub", (name, bound)), relation if is_strict else relation + "="))
