"""The typed tree of a mathematical claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Number:
    """An exact decimal."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class Name:
    """A variable or constant; grouped if it is alone in parentheses."""

    name: str
    grouped: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator or function on its arguments."""

    function: str
    arguments: tuple[Node, ...]


Node = Number | Name | Apply


@dataclass(frozen=True, slots=True)
class Claim:
    """sides[0] relations[0] sides[1] …; without relations an expression that claims nothing."""

    sides: tuple[Node, ...]
    relations: tuple[str, ...]


# Functions that bind a variable.
BINDERS = frozenset({"diff", "integral", "limit", "sum", "product"})


def has_binder(node: Node) -> bool:
    """Whether a tree has a limit, sum, product, derivative or integral in it."""
    return isinstance(node, Apply) and (node.function in BINDERS or any(has_binder(a) for a in node.arguments))


def variables(node: Node) -> set[str]:
    """The names of the variables in a tree."""
    if isinstance(node, Name):
        return {node.name[4:]} if node.name.startswith("var:") else set()
    if isinstance(node, Apply):
        return set().union(*(variables(a) for a in node.arguments))
    return set()


_BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^"}


def show(node: Node) -> str:
    """Return the tree as fully bracketed text, to show how the input was parsed."""
    if isinstance(node, Number):
        return format(node.value, "f")
    if isinstance(node, Name):
        return node.name.removeprefix("var:")
    if node.function in _BINARY:
        left, right = map(show, node.arguments)
        return f"({left} {_BINARY[node.function]} {right})"
    if node.function in ("matrix", "row"):
        return f"[{', '.join(map(show, node.arguments))}]"
    if node.function == "neg":
        return f"(-{show(node.arguments[0])})"
    return f"{node.function}({', '.join(map(show, node.arguments))})"


def show_claim(claim: Claim) -> str:
    """The claim as it was understood."""
    text = show(claim.sides[0])
    for relation, side in zip(claim.relations, claim.sides[1:], strict=True):
        text += f" {relation} {show(side)}"
    return text
