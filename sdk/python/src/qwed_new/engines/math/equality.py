"""Whether two expressions are equal, for all values at which both are defined."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import sympy
from sympy import Expr, Float, Rational

from qwed_new.engines.math import grammar, tree
from qwed_new.engines.math.build import Builder, TwoConventions, Undefined, denominators
from qwed_new.engines.math.domain import least_values
from qwed_new.engines.math.given import Given
from qwed_new.engines.math.tree import Apply, Node
from qwed_new.limits import TooLarge, within

POINTS = 12
STEP_SECONDS = 3.0


@dataclass(slots=True)
class Outcome:
    """holds is True when proven, False when refuted, None when neither was done."""

    holds: bool | None
    method: str
    reason: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)


def sign_of(value: Expr) -> int | None:
    """Return -1, 0 or 1 for a real number without variables, or None if that was not decided."""
    if isinstance(value, Rational):
        return int(bool(value > 0)) - int(bool(value < 0))
    if value.has(sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit):
        return None
    if value in (sympy.oo, -sympy.oo):
        return 1 if value is sympy.oo else -1
    digits = within(STEP_SECONDS, value.evalf, 25, maxn=400)
    if isinstance(digits, Float) and digits._prec > 1:
        return int(bool(digits > 0)) - int(bool(digits < 0)) or None
    if is_zero(value):
        return 0
    return None


def is_zero(value: Expr) -> bool:
    """Whether a proof was found that value is zero."""
    if value == 0:
        return True
    if within(STEP_SECONDS, lambda: bool(sympy.simplify(value) == 0)):
        return True
    if value.is_algebraic:
        x = sympy.Dummy("x")
        return bool(within(STEP_SECONDS, lambda: sympy.minimal_polynomial(value, x) == x))
    return False


def differs(left: Expr, right: Expr) -> bool | None:
    """Whether two numbers differ: by exact comparison, or by digits that are certain."""
    if left == right:
        return False
    if isinstance(left, Rational) and isinstance(right, Rational):
        return True
    if left.is_infinite or right.is_infinite:
        return True
    difference = left - right
    if difference.has(sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit):
        return False if is_zero(difference) else None  # quadrature gives digits, but not certain ones
    digits = within(STEP_SECONDS, difference.evalf, 25, maxn=400)
    if digits is not None:
        real, imaginary = digits.as_real_imag()
        for part in (real, imaginary):
            if isinstance(part, Float) and part._prec > 1 and part != 0:
                return True
    return False if is_zero(difference) else None


def equal(left: Node, right: Node, given: Given | None = None) -> Outcome:
    """Decide `left = right` for all real values of the variables (complex ones where i occurs) that meet the
    conditions given."""
    given = given or Given()
    names = sorted(tree.variables(left) | tree.variables(right))
    complex_values = _mentions(left, "i") or _mentions(right, "i")
    if given and complex_values:
        raise grammar.MathSyntaxError("conditions are decided for real numbers only, and the claim contains i")
    try:
        builder = Builder() if complex_values else Builder(real=True)
        a, b = builder.build(left), builder.build(right)
    except Undefined as undefined:
        return Outcome(False, "evaluation", f"one side is undefined: {undefined}")
    symbols = sorted((a.free_symbols | b.free_symbols), key=str)
    if not names or (not symbols and not _needs_points(left, right)):
        return _equal_numbers(a, b)
    checked, outcome = _compare_at_points(left, right, a, b, names, complex_values, given)
    if outcome:
        return outcome
    domain = "complex" if complex_values else f"real, {given.text}" if given else "real"
    evidence = {
        "variables": names, "domain": domain, "points_checked": checked, "excluded": _excluded(left, right, builder)}
    proof = _prove_zero(a - b, symbols)
    if proof:
        if not checked:
            return Outcome(None, proof, "no point was found at which both sides are defined", evidence)
        return Outcome(True, proof, "", evidence)
    reason = f"the sides agree at {checked} points, but no proof was found"
    if given and checked:
        within_bounds = Builder(given.symbols(), real=True)
        difference = within_bounds.build(left) - within_bounds.build(right)
        if proof := _prove_zero(difference, sorted(difference.free_symbols, key=str)):
            return Outcome(True, proof, "", evidence)
    least = {} if complex_values else least_values(left) | least_values(right)
    if least and checked:
        restricted = Builder({name: sympy.Symbol(name, **{sign: True}) for name, sign in least.items()}, real=True)
        if proof := _prove_zero(restricted.build(left) - restricted.build(right), symbols):
            bounds = [f"{name} {'>' if kind == 'positive' else '>='} 0" for name, kind in sorted(least.items())]
            return Outcome(
                True, proof, "",
                {**evidence, "domain": f"real, {', '.join(bounds)}, as both sides are defined only there"})
    if not complex_values:
        by_sign = {sign: _proof_for(sign, left, right, symbols) for sign in ("positive", "negative")}
        if len(names) == 1 and all(by_sign.values()) and _agree_at_zero(left, right, names[0]):
            return Outcome(True, by_sign["negative"] + ", for negative values, zero and positive values", "", evidence)
        if by_sign["positive"]:
            reason = f"proven for positive values of {', '.join(names)} only"
    return Outcome(None, "simplification", reason, evidence)


def _proof_for(sign: str, left: Node, right: Node, symbols: list[Any]) -> str:
    """Return the proof for values of one sign, "positive" or "negative", or ""."""
    builder = Builder(**{sign: True})
    try:
        return _prove_zero(builder.build(left) - builder.build(right), symbols)
    except Undefined:
        return ""


def _agree_at_zero(left: Node, right: Node, name: str) -> bool:
    """Report whether the sides are equal at 0, or one is not defined there."""
    builder, zero = Builder(real=True), {name: Rational(0)}
    a, b = (value_at(node, builder.build(node), zero) for node in (left, right))
    return a is None or b is None or differs(a, b) is False


def _equal_numbers(a: Expr, b: Expr) -> Outcome:
    evidence = {"left": _text(a), "right": _text(b)}
    difference = differs(a, b)
    exact = isinstance(a, Rational) and isinstance(b, Rational)
    method = "exact rational arithmetic" if exact else "simplification and certain digits"
    if difference is None:
        return Outcome(
            None, method, "the sides agree in all digits that were computed, but no proof was found", evidence)
    if difference and (value := within(STEP_SECONDS, lambda: (a - b).evalf(15))) is not None:
        evidence["difference"] = _text(value)
    return Outcome(not difference, method, "the two sides differ" if difference else "", evidence)


def _mentions(node: Node, constant: str) -> bool:
    if isinstance(node, tree.Name):
        return node.name == constant
    return isinstance(node, Apply) and any(_mentions(a, constant) for a in node.arguments)


def _needs_points(left: Node, right: Node) -> bool:
    return not (tree.has_binder(left) or tree.has_binder(right))


def points(names: list[str]) -> Iterator[dict[str, Rational]]:
    """Rational points, always the same ones: small whole numbers first, then fractions of both signs."""
    for whole in (2, -1, 3, 0, 1, -2):
        yield {name: Rational(whole + (3 * i if whole > 1 else 0)) for i, name in enumerate(names)}
    source = random.Random(0)  # the points need not be secret, only the same each time
    while True:
        yield {name: Rational(source.randint(-60, 60), source.randint(1, 12)) for name in names}


class _Real(Builder):
    """Evaluates at a point at which every part of the expression must be real, as in sqrt(x)*sqrt(y)."""

    def build(self, node: Node) -> Expr:
        value = super().build(node)
        if isinstance(node, Apply) and not is_real(value):
            raise Undefined(f"{node.function} is not real there")
        return value


def _has_whole_bounds(node: Node, point: dict[str, Rational]) -> bool:
    """Report whether each sum and product of node has a whole number of terms at a point."""
    if not isinstance(node, Apply):
        return True
    if node.function in ("sum", "product"):
        low, high = (_Real(point).build(bound) for bound in node.arguments[2:])
        if high is not sympy.oo and not (isinstance(high, sympy.Integer) and high >= low - 1):
            return False
    return all(_has_whole_bounds(a, point) for a in node.arguments)


def value_at(node: Node, expression: Expr, point: dict[str, Rational], real: bool = True) -> Expr | None:
    """Return the number that a tree has at a point, or None if it is not defined there, over the real numbers if real
    is set."""
    try:
        if tree.has_binder(node):
            if not _has_whole_bounds(node, point):
                return None
            by_name = {s: point[str(s)] for s in expression.free_symbols if str(s) in point}
            value = expression.subs(by_name)
            return None if value.has(sympy.nan, sympy.zoo) or value.free_symbols else value
        return (_Real if real else Builder)(point).build(node)
    except (Undefined, TwoConventions, TooLarge):
        return None


def _compare_at_points(left: Node, right: Node, a: Expr, b: Expr, names: list[str], complex_values: bool, given: Given
) -> tuple[int, Outcome | None]:
    checked = 0
    for point in given.points(islice(points(names), 4 * POINTS)):
        if checked >= POINTS:
            break
        x, y = (value_at(n, e, point, not complex_values) for n, e in ((left, a), (right, b)))
        if given and (x is None) != (y is None):
            return checked, undefined_at(point)
        if x is None or y is None or (not complex_values and not (is_real(x) and is_real(y))):
            continue
        checked += 1
        if differs(x, y):
            shown = {name: str(value) for name, value in point.items()}
            return checked, Outcome(
                False,
                "exact evaluation at a point",
                "the two sides differ at " + ", ".join(f"{k} = {v}" for k, v in shown.items()),
                {"counterexample": shown, "left": _text(x), "right": _text(y)},
            )
    return checked, None


def undefined_at(point: dict[str, Rational]) -> Outcome:
    """The outcome if one side has no value at a point that meets the conditions of the claim."""
    shown = ", ".join(f"{name} = {value}" for name, value in point.items())
    return Outcome(None, "evaluation", f"one side has no real value at {shown}, which meets the condition")


def is_real(value: Expr) -> bool:
    """Report whether a number without variables is real, as far as its digits show."""
    if value.is_real is not None:
        return bool(value.is_real)
    digits = within(STEP_SECONDS, value.evalf, 15)
    return digits is not None and digits.as_real_imag()[1] == 0


def _prove_zero(difference: Expr, symbols: list[Any]) -> str:
    """The name of the method that proved difference to be zero, or ""."""
    if difference == 0:
        return "the same normal form"
    if symbols and difference.is_rational_function(*symbols):
        numerator = within(STEP_SECONDS, lambda: sympy.expand(sympy.together(difference).as_numer_denom()[0]))
        return "polynomial normal form" if numerator == 0 else ""
    rewrites: dict[str, Callable[[], Expr]] = {}
    if difference.has(sympy.sin, sympy.cos, sympy.tan, sympy.sinh, sympy.cosh, sympy.tanh):
        rewrites["exponential normal form"] = lambda: sympy.expand(sympy.expand_trig(difference).rewrite(sympy.exp))
    if difference.has(sympy.acos):
        difference = difference.rewrite(sympy.asin)
    rewrites |= {
        "simplification": lambda: sympy.simplify(difference),
        "signs as quotients": lambda: sympy.simplify(difference.replace(sympy.sign, lambda s: s / sympy.Abs(s))),
        "trigonometric normal form": lambda: sympy.simplify(sympy.expand_trig(difference)),
        "simplified exponentials": lambda: sympy.simplify(sympy.expand(difference.rewrite(sympy.exp))),
    }
    for method, rewrite in rewrites.items():
        if within(STEP_SECONDS, rewrite) == 0:
            return method
    return ""


def _excluded(left: Node, right: Node, builder: Builder) -> list[str]:
    """Return the points at which a side is not defined, such as `x = 0`, or `x**5 - x + 1 = 0` if the roots are not
    found."""
    found: list[str] = []
    for node in (*denominators(left), *denominators(right)):
        while isinstance(node, Apply) and node.function == "abs":
            node = node.arguments[0]
        try:
            expression = builder.build(node)
        except Undefined:
            continue
        if not (symbols := expression.free_symbols) or expression.is_nonzero:
            continue
        texts = [f"{expression} = 0"]
        if len(symbols) == 1 and expression.is_polynomial():
            symbol = next(iter(symbols))
            roots = within(STEP_SECONDS, lambda e=expression, s=symbol: sympy.solveset(e, s, sympy.S.Reals))
            if roots is sympy.S.EmptySet:
                continue
            if isinstance(roots, sympy.FiniteSet):
                texts = [f"{symbol} = {root}" for root in sorted(roots, key=str)]
        found.extend(text for text in texts if text not in found)
    return found


def _text(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 400 else text[:400] + "…"
