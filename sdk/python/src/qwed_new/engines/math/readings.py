"""Other readings of a claim that a careful reader may have: `log` to the base 10, `xy` as x times y, `km` as a unit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from qwed_new.engines.english_math import NUMBER_WORDS
from qwed_new.engines.math.grammar import Apply, Claim, Name, Node

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


def others(claim: Claim, refuted: bool) -> Iterator[tuple[Claim, str]]:
    """Yield each other reading, with an unambiguous notation to suggest. Names are split only if the claim was
    refuted."""
    decimal = _mapped(
        claim, lambda n: Apply("log10", n.arguments) if isinstance(n, Apply) and n.function == "log"
        and len(n.arguments) == 1 else n
    )
    if decimal != claim:
        yield decimal, "'log' may be to the base e or 10: write ln or log10"
    if refuted and (apart := _mapped(claim, _apart)) != claim:
        yield apart, "names of several letters may be products: write '*' between the letters"


def _mapped(claim: Claim, change: Callable[[Node], Node]) -> Claim:
    def walk(node: Node) -> Node:
        if isinstance(node, Apply):
            node = Apply(node.function, tuple(walk(a) for a in node.arguments))
        return change(node)

    return Claim(tuple(walk(s) for s in claim.sides), claim.relations)


def _apart(node: Node) -> Node:
    if not (isinstance(node, Name) and node.name.startswith("var:") and 2 <= len(node.name) - 4 <= 3
        and node.name[4:].isalpha()):
        return node
    letters = [Name("e" if c == "e" else "i" if c == "i" else "var:" + c) for c in node.name[4:]]
    product: Node = letters[0]
    for letter in letters[1:]:
        product = Apply("mul", (product, letter))
    return product
