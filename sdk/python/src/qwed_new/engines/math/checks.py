"""Compare the algebra system's integrals and limits with numerical results."""

from __future__ import annotations

import mpmath
import sympy
from sympy import Expr, Symbol

from qwed_new.engines.math.grammar import MathSyntaxError
from qwed_new.limits import within

SECONDS = 3.0
DIGITS = 20


class Disagreement(MathSyntaxError):
    """Two methods find two values, so that neither is believed."""


def check_integral(body: Expr, symbol: Symbol, low: Expr, high: Expr, value: Expr) -> None:
    """Compare the value of a definite integral with quadrature; Disagreement when they differ by more than a
    millionth."""
    found = within(SECONDS, _quadrature, body, symbol, low, high)
    if found is None:
        raise Disagreement("the integral could not be checked by quadrature")
    expected = mpmath.mpmathify(value.evalf(DIGITS))
    if abs(found - expected) > mpmath.mpf("1e-6") * (1 + abs(expected)):
        raise Disagreement("the algebra system and quadrature find different values of the integral")


def _quadrature(body: Expr, symbol: Symbol, low: Expr, high: Expr) -> mpmath.mpc:
    with mpmath.workdps(DIGITS):
        function = sympy.lambdify(symbol, body, "mpmath")
        ends = [mpmath.mpmathify(e.evalf(DIGITS)) if e.is_finite else mpmath.inf * (1 if e is sympy.oo else -1)
            for e in (low, high)]
        if all(mpmath.isfinite(e) for e in ends):
            ends = mpmath.linspace(ends[0], ends[1], 9)  # corners and jumps cost less when the parts are short
        return mpmath.quad(function, ends)


def check_limit(body: Expr, symbol: Symbol, point: Expr, sign: int, value: Expr) -> None:
    """Compare a limit from one side with values beside the point; Disagreement if they do not approach it."""
    found = [within(SECONDS, lambda k=k: body.subs(symbol, point + sympy.Rational(sign, 10**k)).evalf(DIGITS))
        for k in (3, 6, 12)]
    if any(f is None or not f.is_number or not f.is_real for f in found):
        raise Disagreement("the limit could not be checked, because the expression has no real values beside the point")
    first, _, last = found
    near = abs(last - value) < sympy.Rational(1, 100) * (1 + abs(value)) if value.is_finite and value.is_real else (
        value in (sympy.oo, -sympy.oo) and last * (1 if value == sympy.oo else -1) > max(1, abs(first)))
    if near != True:  # noqa: E712  a relation of SymPy
        raise Disagreement("the algebra system and values beside the point disagree about the limit")


def is_real_beside(body: Expr, symbol: Symbol, point: Expr, sign: int) -> bool | None:
    """Report whether an expression is real a little to the right (sign 1) or left (-1) of a point, or None if that is
    unknown."""
    answers = set()
    for k in (3, 5, 7):
        value = within(SECONDS, lambda k=k: body.subs(symbol, point + sympy.Rational(sign, 10**k)).evalf(15))
        if value is None or not value.is_number:
            return None
        answers.add(value.as_real_imag()[1] == 0)
    return answers.pop() if len(answers) == 1 else None
