"""Other readings of a claim that a careful reader may have: `log` to the base 10, `xy` as x times y, `km` as a unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from qwed_new.engines.english_math import NUMBER_WORDS
from qwed_new.engines.math.grammar import MathSyntaxError
from qwed_new.engines.math.tree import Apply, Claim, Name, Node, variables

_BEHIND_NUMBER = re.compile(r"\d\s*([A-Za-z]{2,})(?![\w(])")
_BESIDE_NAME = re.compile(r"(?<![\w.])[A-Za-z]\w*\s+([A-Za-z]{2,})(?![\w(])|(?<![\w.])([A-Za-z]{2,})\s+(?=[A-Za-z])")
_NONE_OF = re.compile(r"(?<![\w.])0(?:\.0*)?\s+([A-Za-z]+)(?![\w(])")


def word(text: str, names: set[str], refuted: bool) -> str:
    """Return advice if a variable of a claim, one of `names`, may be a unit or a number in words: then a refutation
    decides nothing, and neither does a proof that multiplies it by 0."""
    patterns = (_BEHIND_NUMBER, _BESIDE_NAME) if refuted else (_NONE_OF,)
    found = [w for p in patterns for m in p.finditer(text) for w in m.groups() if w]
    unit = next((n for n in (*found, *(NUMBER_WORDS & names if refuted else ())) if n in names), "")
    return unit and (
        f"{unit!r} may be a unit or a word: write numbers with digits, and '*' between a number and a variable")


def with_products(claim: Claim) -> Claim:
    """Return a claim with x times y for `xy`, if its letters are variables, or another name has the same letters."""
    names = set().union(*(variables(s) for s in claim.sides))
    letters = {n for n in names if len(n) == 1}
    products = {n for n in names if 2 <= len(n) <= 3 and n.isalpha() and (
        set(n) <= letters or any(m != n and sorted(m) == sorted(n) for m in names))}
    return Claim(tuple(_multiplied(s, products) for s in claim.sides), claim.relations)


def _multiplied(node: Node, products: set[str]) -> Node:
    """Return a tree with the names in products taken apart. A power or a factorial is of the last letter: ab^2."""
    if isinstance(node, Name):
        return _apart(node) if node.name[4:] in products else node
    if not isinstance(node, Apply):
        return node
    first, *others = node.arguments
    postfix = node.function in ("pow", "factorial")
    if postfix and isinstance(first, Name) and not first.grouped and first.name[4:] in products:
        last = Apply(node.function, (_apart(Name(first.name[-1])), *(_multiplied(o, products) for o in others)))
        return Apply("mul", (_apart(Name(first.name[:-1])), last))
    if node.function == "div" and isinstance(others[0], Name) and others[0].name[4:] in products:
        raise MathSyntaxError(f"'a/{others[0].name[4:]}' has two readings: write the parentheses")
    return Apply(node.function, tuple(_multiplied(a, products) for a in node.arguments))


def with_values(claim: Claim, values: dict[str, Node]) -> Claim:
    """Return a claim with values in place of variables."""
    return _mapped(claim, lambda n: values.get(n.name.removeprefix("var:"), n) if isinstance(n, Name) else n)


def others(claim: Claim, refuted: bool) -> Iterator[tuple[Claim, str]]:
    """Yield each other reading, with an unambiguous notation to suggest. Names are split only if the claim was
    refuted."""
    decimal = _mapped(
        claim, lambda n: Apply("log10", n.arguments) if isinstance(n, Apply) and n.function == "log"
        and len(n.arguments) == 1 else n
    )
    if decimal != claim:
        yield decimal, "'log' may be to the base e or 10: write ln or log10"
    short = {n for s in claim.sides for n in variables(s) if 2 <= len(n) <= 3 and n.isalpha()}
    if refuted and short:
        apart = Claim(tuple(_multiplied(s, short) for s in claim.sides), claim.relations)
        yield apart, "names of several letters may be products: write '*' between the letters"


def _mapped(claim: Claim, change: Callable[[Node], Node]) -> Claim:
    def walk(node: Node) -> Node:
        if isinstance(node, Apply):
            node = Apply(node.function, tuple(walk(a) for a in node.arguments))
        return change(node)

    return Claim(tuple(walk(s) for s in claim.sides), claim.relations)


def _apart(name: Name) -> Node:
    letters = [Name(c if c in "ei" else "var:" + c) for c in name.name.removeprefix("var:")]
    product: Node = letters[0]
    for letter in letters[1:]:
        product = Apply("mul", (product, letter))
    return product
