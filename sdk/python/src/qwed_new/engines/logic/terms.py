"""From trees of QWED-Logic to Z3 terms."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import z3

from qwed_new import strict_json
from qwed_new.engines.logic.dsl import Atom, Form, Group, LogicSyntaxError, Tree, is_number, names_in
from qwed_new.engines.logic.sorts import BOOL, INT, REAL, TEXT, Sorts, quantified
from qwed_new.limits import TooLarge

_MAKE = {BOOL: z3.Bool, INT: z3.Int, REAL: z3.Real, TEXT: z3.String}


class Compiler:
    """Compiles formulas whose sorts were inferred; `variables` are those that are free."""

    def __init__(self, sorts: Sorts) -> None:
        self._sorts = sorts
        self.variables: dict[str, Any] = {}

    def compile(self, tree: Tree, bound: dict[str, Any] | None = None) -> Any:
        """The Z3 term of a tree."""
        bound = bound or {}
        if isinstance(tree, Atom):
            return self._atom(tree.text, bound)
        if isinstance(tree, Group):
            return self.compile(tree.items[0], bound)
        if tree.head in ("FORALL", "EXISTS"):
            return self._quantifier(tree, bound)
        return apply(tree.head, [self.compile(a, bound) for a in tree.arguments])

    def _atom(self, text: str, bound: dict[str, Any]) -> Any:
        if is_number(text):
            return z3.RealVal(text) if any(c in text for c in ".eE") else z3.IntVal(text)
        if text.startswith('"'):
            return z3.StringVal(strict_json.loads(text))
        if text.lower() in ("true", "false"):
            return z3.BoolVal(text.lower() == "true")
        if text in bound:
            return bound[text]
        if text not in self.variables:
            self.variables[text] = _MAKE[self._sorts.of(text)](text)
        return self.variables[text]

    def _quantifier(self, tree: Form, bound: dict[str, Any]) -> Any:
        names = [name for name, _ in quantified(tree.arguments[0])]
        made = {name: z3.FreshConst(_MAKE[self._sorts.of_bound(name, tree)](name).sort(), name) for name in names}
        body = self.compile(tree.arguments[1], {**bound, **made})
        quantify = z3.ForAll if tree.head == "FORALL" else z3.Exists
        return quantify(list(made.values()), body)


def apply(head: str, a: list[Any]) -> Any:
    """Return the Z3 term of an operator on terms."""
    low, high = _ARITY.get(head, (1, 10_000))
    if not low <= len(a) <= high:
        raise LogicSyntaxError(
            f"{head} takes {low} argument(s)" + (f" at least, not {len(a)}" if high > low else f", not {len(a)}"))
    if head in _ARITHMETIC and any(z3.is_real(t) for t in a):
        a = [z3.ToReal(t) if z3.is_int(t) else t for t in a]
    return _BUILD[head](a)


def _divide(a: list[Any]) -> Any:
    out = z3.ToReal(a[0]) if z3.is_int(a[0]) else a[0]
    for divisor in a[1:]:
        out = out / (z3.ToReal(divisor) if z3.is_int(divisor) else divisor)
    return out


def _modulo(a: list[Any]) -> Any:
    if not all(z3.is_int(t) for t in a):
        raise LogicSyntaxError("MOD is of whole numbers")
    return a[0] % a[1]


def _power(a: list[Any]) -> Any:
    if not z3.is_int_value(a[1]) or not 0 <= a[1].as_long() <= 32:
        raise TooLarge("POW takes a whole exponent from 0 to 32")
    return z3.Product([a[0]] * a[1].as_long()) if a[1].as_long() else z3.IntVal(1)


def _chain(compare: Any) -> Any:
    return lambda a: z3.And([compare(x, y) for x, y in pairwise(a)])


def _minus(a: list[Any]) -> Any:
    if len(a) == 1:
        return -a[0]
    out = a[0]
    for term in a[1:]:
        out = out - term
    return out


def _xor(a: list[Any]) -> Any:
    out = a[0]
    for term in a[1:]:
        out = z3.Xor(out, term)
    return out


_ARITHMETIC = frozenset({
    "GT", "LT", "GTE", "LTE", "EQ", "NEQ", "PLUS", "MINUS", "MULT", "DIV", "DISTINCT", "ITE", "IN"})
_ARITY = {"NOT": (1, 1), "IMPLIES": (2, 2), "ITE": (3, 3), "MOD": (2, 2), "POW": (2, 2), "NEG": (1, 1), "ABS": (1, 1),
          **dict.fromkeys(("GT", "LT", "GTE", "LTE", "EQ", "NEQ", "DISTINCT", "DIV", "IFF", "XOR", "IN"),
              (2, 10_000))}  # fmt: skip
_BUILD: dict[str, Any] = {
    "AND": z3.And, "OR": z3.Or, "NOT": lambda a: z3.Not(a[0]), "IMPLIES": lambda a: z3.Implies(*a),
    "IFF": _chain(lambda x, y: x == y), "XOR": _xor,
    "GT": _chain(lambda x, y: x > y), "LT": _chain(lambda x, y: x < y),
    "GTE": _chain(lambda x, y: x >= y), "LTE": _chain(lambda x, y: x <= y),
    "EQ": _chain(lambda x, y: x == y), "NEQ": lambda a: z3.Distinct(*a), "DISTINCT": lambda a: z3.Distinct(*a),
    "PLUS": z3.Sum, "MINUS": _minus, "MULT": z3.Product, "DIV": _divide, "MOD": _modulo, "POW": _power,
    "NEG": lambda a: -a[0], "ABS": lambda a: z3.If(a[0] >= 0, a[0], -a[0]),
    "ITE": lambda a: z3.If(*a), "IN": lambda a: z3.Or([a[0] == b for b in a[1:]]),
}  # fmt: skip


def divisors(tree: Tree) -> list[Tree]:
    """Return the terms that must not be zero: the divisors outside quantifiers and inside."""
    if isinstance(tree, Atom):
        return []
    parts = tree.arguments if isinstance(tree, Form) else tree.items
    found = [d for p in parts for d in divisors(p)]
    if isinstance(tree, Form) and tree.head in ("DIV", "MOD"):
        found.extend(tree.arguments[1:])
    if isinstance(tree, Form) and tree.head == "POW" and isinstance(exponent := tree.arguments[-1], Atom) and is_zero(
        exponent.text):
        found.append(tree.arguments[0])
    return found


def is_zero(text: str) -> bool:
    """Whether an atom is the number zero."""
    return is_number(text) and float(text) == 0


def divides_by_quantified(tree: Tree, bound: frozenset[str] = frozenset()) -> bool:
    """Report whether a divisor contains a quantified variable. Then no constraint can exclude a division by zero."""
    if isinstance(tree, Atom):
        return False
    if isinstance(tree, Form) and tree.head in ("FORALL", "EXISTS") and len(tree.arguments) == 2:
        bound = bound | {name for name, _ in quantified(tree.arguments[0])}
    parts = tree.arguments if isinstance(tree, Form) else tree.items
    if any(divides_by_quantified(p, bound) for p in parts):
        return True
    return any(names_in(d) & bound for d in divisors(tree))


def value_of(term: Any) -> Any:
    """A value of a model in JSON's types; fractions and irrational numbers become text."""
    if z3.is_true(term) or z3.is_false(term):
        return z3.is_true(term)
    if z3.is_int_value(term):
        return term.as_long()
    if z3.is_rational_value(term):
        return term.numerator_as_long() if term.denominator_as_long() == 1 else str(term.as_fraction())
    if z3.is_algebraic_value(term):
        return term.as_decimal(20)
    if z3.is_string_value(term):
        return term.as_string()
    return str(term)


def core_of(solver: z3.Solver, names: Mapping[str, str]) -> list[str]:
    """Return the names of a solver's unsat core, in the order of names: the solver's own differs from run to run."""
    labels = {str(label) for label in solver.unsat_core()}
    return [text for label, text in names.items() if label in labels]
