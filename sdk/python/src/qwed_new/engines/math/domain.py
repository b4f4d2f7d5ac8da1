"""Where an expression has a real value: at the points at which each of its parts has one."""

from __future__ import annotations

from decimal import Decimal

from sympy import Rational

from qwed_new.engines.math.build import Builder, Undefined
from qwed_new.engines.math.tree import Apply, Name, Node, Number

_ONE = Number(Decimal(1))
_LOGARITHMS = ("ln", "log", "log2", "log10")
_TOTAL = {"add", "sub", "mul", "neg", "abs", "sign", "floor", "ceil", "min", "max", "exp", "sin", "cos", "atan",
    "sinh", "cosh", "tanh", "asinh", "cbrt"}


def conditions(node: Node) -> list[tuple[Node, str]]:
    """Return trees, each with its relation to 0 (">", ">=" or "!="), that hold wherever node has a real value."""
    if not isinstance(node, Apply):
        return []
    found = [c for a in node.arguments for c in conditions(a)]
    first, function = node.arguments[0], node.function
    if function in _LOGARITHMS:
        found.append((first, ">"))
    elif function == "div" and not isinstance(node.arguments[1], Number):
        found.append((node.arguments[1], "!="))
    elif function == "sqrt":
        found.append((first, ">="))
    elif function in ("pow", "root"):
        found += _of_power(node)
    elif function in ("asin", "acos", "atanh"):
        found += [(Apply(sign, (_ONE, first)), ">" if function == "atanh" else ">=") for sign in ("sub", "add")]
    elif function == "acosh":
        found.append((Apply("sub", (first, _ONE)), ">="))
    elif function in ("sum", "product") and node.arguments[3] != Name("oo"):
        low, high = node.arguments[2:]
        found.append((Apply("sub", (high, Apply("sub", (low, _ONE)))), ">="))
    return found


def _of_power(node: Apply) -> list[tuple[Node, str]]:
    base, exponent = node.arguments
    value = _rational(exponent)
    if value is None or value == 0:
        return []
    if node.function == "root":
        value = 1 / value
    if value.q % 2 == 0:
        return [(base, ">" if value < 0 else ">=")]
    return [(base, "!=")] if value < 0 else []


def _rational(node: Node) -> Rational | None:
    try:
        value = Builder().build(node)
    except Undefined:
        return None
    return value if isinstance(value, Rational) else None


def least_values(node: Node) -> dict[str, str]:
    """Return the variables that are positive or nonnegative wherever node has a real value, with that word."""
    found: dict[str, str] = {}
    for part, relation in conditions(node):
        if isinstance(part, Name) and part.name.startswith("var:"):
            if relation == ">":
                found[part.name[4:]] = "positive"
            elif relation == ">=":
                found.setdefault(part.name[4:], "nonnegative")
    return found


def is_total(node: Node) -> bool:
    """Report whether node is known to have a real value for all real values of its variables."""
    if not isinstance(node, Apply):
        return not (isinstance(node, Name) and node.name in ("i", "oo"))
    if not all(is_total(a) for a in node.arguments):
        return False
    if node.function in _TOTAL:
        return True
    last = node.arguments[-1]
    if not isinstance(last, Number) or last.value == 0:
        return False
    return node.function == "div" or (node.function == "pow" and last.value > 0 and last.value % 1 == 0)
