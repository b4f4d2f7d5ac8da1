"""Inequalities, decided over the real numbers.

Polynomials are translated exactly. Another function becomes a new variable, of which Z3 is given facts that hold at
every point at which the function is defined: `sin(x)**2 + cos(x)**2 = 1`, `exp(x) >= 1 + x`. If no values of the
variables meet the facts and violate the claim, the claim is proven. Values that do are not a counterexample, because
the facts do not determine the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import sympy
import z3
from sympy import Expr, Float, Integer, Rational, Symbol
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from qwed_new.engines.math.equality import Outcome, is_zero, sign_of
from qwed_new.engines.math.given import Given
from qwed_new.limits import within

MILLISECONDS = 1_500
SECONDS = 2.0
MAX_DEGREE = 12
DIGITS = 30
METHOD = "Z3 over the real numbers"
_MIRROR = {"<": ">", "<=": ">="}


@dataclass(slots=True)
class Domain:
    """The points that a claim is about: those at which all its parts are real."""

    total: bool  # all points belong to it
    conditions: list[tuple[Expr, str]]  # how expressions relate to 0 at each of its points
    fails_at: Callable[[dict[str, Rational]], Outcome | None]  # the refutation by a point, if it is one
    whole: set[str] = field(default_factory=set)  # the variables that are whole numbers


def decide_order(difference: Expr, relation: str, domain: Domain) -> Outcome:
    """Decide `difference relation 0` for all real values of the domain."""
    if relation in _MIRROR:
        difference, relation = -difference, _MIRROR[relation]
    strict = relation == ">"
    symbols = sorted(difference.free_symbols, key=str)
    polynomial = difference.is_polynomial(*symbols)
    plain = difference if polynomial else _plain(difference)
    try:
        for whole in (False,) if polynomial else (False, True):
            translation = _Translation(whole, domain.conditions, domain.whole)
            outcome = _by_facts(plain, strict, symbols, polynomial, translation)
            if outcome.holds is False and not domain.total:
                outcome = _confirmed(outcome, domain)
            if outcome.holds is not None:
                return outcome
    except _Unsupported as error:
        outcome = Outcome(None, METHOD, str(error))
    if not polynomial and len(symbols) == 1:
        for method, proves in _LEAST_VALUES.items():
            if within(4 * SECONDS, proves, difference, symbols[0], strict):
                return Outcome(True, method, "", {"domain": "real"})
    return outcome


def _confirmed(outcome: Outcome, domain: Domain) -> Outcome:
    """Return the outcome if the claim as written fails at its point, which the solver found for a simpler form."""
    try:
        point = {name: Rational(value) for name, value in outcome.evidence["counterexample"].items()}
    except (TypeError, ValueError):  # not a rational number
        point = None
    return (point and domain.fails_at(point)) or Outcome(None, METHOD, "no counter-example was found, and no proof")


def _by_facts(
    difference: Expr, strict: bool, symbols: list[Any], polynomial: bool, translation: _Translation) -> Outcome:
    term = translation.term(difference)
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS if not polynomial else 2 * MILLISECONDS)
    solver.add(*translation.facts, term <= 0 if strict else term < 0)
    answer = solver.check()
    if answer == z3.unsat:
        method = METHOD if polynomial else METHOD + ", with facts about the functions"
        return Outcome(True, method, "", {"domain": "real"})
    if answer == z3.sat and polynomial:
        model = solver.model()
        point = {str(s): str(model.eval(translation.term(s), model_completion=True)) for s in symbols}
        return Outcome(False, METHOD, "the claim fails at a point", {"counterexample": point})
    if polynomial:
        return Outcome(None, METHOD, f"the solver did not decide within {2 * MILLISECONDS / 1000:g} seconds")
    return Outcome(None, METHOD, "no counter-example was found, and no proof")


class _Unsupported(Exception):
    pass


class _Translation:
    """Translates expressions to terms of Z3. With whole, `facts` has bounds of functions by polynomials, too."""

    def __init__(
        self, whole: bool, conditions: Iterable[tuple[Expr, str]] = (), integers: Iterable[str] = ()) -> None:
        self.facts: list[Any] = [z3.Real(name) == z3.ToReal(z3.Int(name)) for name in sorted(integers)]
        self._whole = whole
        self._terms: dict[Expr, Any] = {}
        self._pairs: dict[type, list[tuple[Any, Any]]] = {}
        for expression, relation in conditions:
            try:
                term = self.term(_plain(expression))
            except _Unsupported:
                continue  # one fact less
            self.facts.append(term > 0 if relation == ">" else term >= 0 if relation == ">=" else term != 0)

    def term(self, e: Expr) -> Any:
        """Return the term of an expression, the same for equal ones."""
        if e not in self._terms:
            self._terms[e] = self._translate(e)
        return self._terms[e]

    def place(self, f: Expr, points: Iterable[Expr]) -> None:
        """Add the values of log at the given points, so that it is known to be less before them and more behind."""
        if f.has(sympy.log):
            for c in points:
                if c.is_finite and c.is_positive:
                    self._monotonic(sympy.log, self.term(c), self.term(sympy.log(c)))

    def _new(self) -> Any:
        return z3.FreshReal("f")

    def _translate(self, e: Expr) -> Any:
        if isinstance(e, Symbol):
            return z3.Real(str(e))
        if isinstance(e, Rational):
            return z3.RealVal(f"{e.p}/{e.q}")
        if e.is_Add:
            return z3.Sum([self.term(a) for a in e.args])
        if e.is_Mul:
            return z3.Product([self.term(a) for a in e.args])
        if e.is_Pow and isinstance(e.exp, Rational):
            return self._power(e.base, e.exp)
        if e.is_number:
            return self._constant(e)
        if isinstance(e, sympy.exp):
            return self._exponential(e.args[0])
        if e.is_Pow and e.base.is_positive:
            return self._exponential(sympy.expand(e.exp * sympy.log(e.base)))
        if isinstance(e, sympy.sin | sympy.cos):
            sine, cosine = self._angle(e.args[0])
            return sine if isinstance(e, sympy.sin) else cosine
        handler = self._HANDLERS.get(type(e))
        if handler is None:
            raise _Unsupported(f"inequalities with {e.func} cannot be proven")
        return handler(self, *[self.term(a) for a in e.args])

    def _power(self, base: Expr, exponent: Rational) -> Any:
        if abs(exponent.p) > MAX_DEGREE or exponent.q > MAX_DEGREE:
            raise _Unsupported(f"only polynomials of degrees up to {MAX_DEGREE} can be proven")
        value = self.term(base)
        if exponent.q % 2 and exponent.q > 1 and not (base.is_nonnegative or self._is_proven(value >= 0)):
            raise _Unsupported(
                "a negative number to the power 1/3 has a real and a complex value: write cbrt(a) or root(a, n)")
        if exponent.q > 1:  # real only if the base is not negative
            root = self._new()
            self.facts += [root >= 0, _times(root, exponent.q) == value]
            value = root
        if exponent.p < 0:  # defined only if the base is not 0
            inverse = self._new()
            self.facts.append(inverse * value == 1)
            value = inverse
        return _times(value, abs(exponent.p))

    def _is_proven(self, claim: Any) -> bool:
        solver = z3.Solver()
        solver.set("timeout", MILLISECONDS)
        solver.add(*self.facts, z3.Not(claim))
        return bool(solver.check() == z3.unsat)

    def _constant(self, e: Expr) -> Any:
        """A number that is not rational, between two rational ones."""
        digits = within(SECONDS, e.evalf, DIGITS)
        if not isinstance(digits, Float) or digits._prec <= 1 or not digits.is_finite:
            raise _Unsupported("a number of the claim could not be computed")
        middle = Rational(digits)
        width = (abs(middle) + 1) / Rational(10) ** (DIGITS - 5)
        value = self._new()
        low, high = middle - width, middle + width
        self.facts += [value > z3.RealVal(f"{low.p}/{low.q}"), value < z3.RealVal(f"{high.p}/{high.q}")]
        return value

    def _exponential(self, exponent: Expr) -> Any:
        """exp of a sum as a product of powers, so that exp(2*x) and exp(x)**2 are one term."""
        product, constant = z3.RealVal(1), Integer(0)
        for part in sympy.Add.make_args(sympy.expand(exponent)):
            factor, rest = part.as_coeff_Mul()
            if rest.is_number:
                constant += part
                continue
            if not isinstance(factor, Rational) or abs(factor.p) > MAX_DEGREE:
                raise _Unsupported("the exponents are too large for a proof")
            if factor.could_extract_minus_sign():
                factor, rest, sign = -factor, rest, -1
            else:
                sign = 1
            base = self._base(rest, factor.q)
            power = _times(base, factor.p)
            if sign < 0:
                inverse = self._new()
                self.facts.append(inverse * power == 1)
                power = inverse
            product = product * power
        if constant != 0:
            product = product * self.term(sympy.exp(constant))
        if self._whole:
            self._bound_exponential(product, self.term(sympy.expand(exponent)))
        return product

    def _base(self, argument: Expr, divisor: int) -> Any:
        """exp(argument / divisor). Those of one argument are powers of the finest."""
        key = sympy.Function("exp_of")(argument, divisor)
        if key not in self._terms:
            value = self._terms[key] = self._new()
            self.facts.append(value > 0)
            exponent = self.term(argument) / divisor
            self._bound_exponential(value, exponent)
            if divisor > 1:
                self.facts.append(_times(value, divisor) == self._base(argument, 1))
        return self._terms[key]

    def _bound_exponential(self, value: Any, t: Any) -> None:
        self.facts += [value > 0, value >= 1 + t, (t > 0) == (value > 1), (t == 0) == (value == 1)]
        if self._whole:
            square = 1 + t + t * t / 2
            self.facts += [z3.Implies(t >= 0, value >= square), z3.Implies(t <= 0, value <= square)]
        self._monotonic(sympy.exp, t, value)

    def _monotonic(self, kind: type, t: Any, value: Any) -> None:
        pairs = self._pairs.setdefault(kind, [])
        for other, other_value in pairs[:6]:
            self.facts.append((t <= other) == (value <= other_value))
        pairs.append((t, value))

    def _angle(self, argument: Expr) -> tuple[Any, Any]:
        key = sympy.Function("angle_of")(argument)
        if key not in self._terms:
            t, s, c = self.term(argument), self._new(), self._new()
            self.facts += [s * s + c * c == 1, s >= -1, s <= 1, c >= -1, c <= 1]
            if self._whole:
                cubic = t - t * t * t / 6
                self.facts += [
                    z3.Implies(t > 0, z3.And(s < t, s > cubic)), z3.Implies(t < 0, z3.And(s > t, s < cubic)),
                    z3.Implies(t == 0, z3.And(s == 0, c == 1)), c >= 1 - t * t / 2]
            self._terms[key] = (s, c)
        return self._terms[key]

    def _logarithm(self, v: Any) -> Any:
        value = self._new()
        self.facts += [v > 0, value <= v - 1, value * v >= v - 1, (v > 1) == (value > 0), (v == 1) == (value == 0)]
        self._monotonic(sympy.log, v, value)
        return value

    def _arctangent(self, v: Any) -> Any:
        value, half = self._new(), self.term(sympy.pi) / 2
        self.facts += [value < half, value > -half, (v > 0) == (value > 0), (v == 0) == (value == 0)]
        self.facts += [z3.Implies(v > 0, value < v), z3.Implies(v < 0, value > v)]
        self._monotonic(sympy.atan, v, value)
        return value

    def _arcsine(self, v: Any) -> Any:
        value, half = self._new(), self.term(sympy.pi) / 2
        self.facts += [v <= 1, v >= -1, value <= half, value >= -half, (v > 0) == (value > 0), (v == 0) == (value == 0)]
        self.facts += [z3.Implies(v >= 0, value >= v), z3.Implies(v <= 0, value <= v)]
        return value

    def _floor(self, v: Any) -> Any:
        value = z3.FreshInt("n")
        self.facts += [z3.ToReal(value) <= v, v < z3.ToReal(value) + 1]
        return z3.ToReal(value)

    def _least(self, *values: Any) -> Any:
        value = values[0]
        for other in values[1:]:
            value = z3.If(other < value, other, value)
        return value

    _HANDLERS: ClassVar[dict[Any, Any]] = {
        sympy.log: _logarithm,
        sympy.atan: _arctangent,
        sympy.asin: _arcsine,
        sympy.floor: _floor,
        sympy.ceiling: lambda self, v: -self._floor(-v),
        sympy.Abs: lambda self, v: z3.If(v >= 0, v, -v),
        sympy.sign: lambda self, v: z3.If(v > 0, z3.RealVal(1), z3.If(v < 0, z3.RealVal(-1), z3.RealVal(0))),
        sympy.Min: _least,
        sympy.Max: lambda self, *values: -self._least(*[-v for v in values]),
    }


def _times(value: Any, count: int) -> Any:
    return z3.Product([value] * count) if count else z3.RealVal(1)


def _plain(e: Expr) -> Expr:
    """An expression with sine, cosine and exp in place of the functions that they define, and without multiple
    angles."""
    for function, form in _FORMS.items():
        e = e.replace(function, form)
    return sympy.expand_trig(e) if e.has(sympy.sin, sympy.cos) else e


_FORMS: dict[Any, Callable[[Expr], Expr]] = {
    sympy.tan: lambda u: sympy.sin(u) / sympy.cos(u),
    sympy.cot: lambda u: sympy.cos(u) / sympy.sin(u),
    sympy.sec: lambda u: 1 / sympy.cos(u),
    sympy.csc: lambda u: 1 / sympy.sin(u),
    sympy.acos: lambda u: sympy.pi / 2 - sympy.asin(u),
    sympy.sinh: lambda u: (sympy.exp(u) - sympy.exp(-u)) / 2,
    sympy.cosh: lambda u: (sympy.exp(u) + sympy.exp(-u)) / 2,
    sympy.tanh: lambda u: (sympy.exp(2 * u) - 1) / (sympy.exp(2 * u) + 1),
    sympy.coth: lambda u: (sympy.exp(2 * u) + 1) / (sympy.exp(2 * u) - 1),
}
_SMOOTH = (sympy.exp, sympy.log, sympy.sin, sympy.cos)
_CANDIDATES = (0, 1, -1, 2, -2, sympy.E, 1 / sympy.E, Rational(1, 2), sympy.pi, sympy.log(2))


def _falls_and_rises_above(f: Expr, x: Symbol, strict: bool) -> bool:
    """Report whether f is proven to fall before a critical point and to rise behind it, with a value above 0 there (or
    equal to it, unless strict)."""
    f = _plain(f)
    interval = _domain(f, x)
    if interval is None:
        return False
    slope = sympy.diff(f, x)
    for c in _critical(slope, x, interval):
        sign = sign_of(f.subs(x, c))
        if not (sign == 1 or (sign == 0 and not strict)):
            return False
        forms = (slope, sympy.simplify(slope), sympy.fraction(sympy.together(slope))[0] * sympy.fraction(
            sympy.together(slope))[1])
        return any(_holds_within(-s, x, (interval[0], c)) for s in forms) and any(
            _holds_within(s, x, (c, interval[1])) for s in forms)
    return False


def _critical(slope: Expr, x: Symbol, interval: tuple[Expr, Expr]) -> Iterator[Expr]:
    """Yield the points of an interval at which the slope is proven to be 0."""
    for c in (*map(sympy.sympify, _CANDIDATES), *_roots(slope, x)):
        inside = c.is_real and all(sign_of(b) == 1 for b in (c - interval[0], interval[1] - c) if b.is_finite)
        if inside and is_zero(slope.subs(x, c)):
            yield c


def _is_convex_above(f: Expr, x: Symbol, strict: bool) -> bool:
    """Report whether f is proven to be convex on its domain, an interval, with a least value above 0 (or equal to it,
    unless strict)."""
    f = _plain(f)
    interval = _domain(f, x)
    if interval is None:
        return False
    slope = sympy.diff(f, x)
    second = sympy.diff(slope, x)
    if not (_holds_within(second, x, interval) or _holds_within(sympy.simplify(second), x, interval)):
        return False
    for c in _critical(slope, x, interval):
        sign = sign_of(f.subs(x, c))
        return sign == 1 or (sign == 0 and not strict)
    return False


_LEAST_VALUES: dict[str, Callable[[Expr, Symbol, bool], bool]] = {
    "convexity: the least value is at the only critical point": _is_convex_above,
    "the slope: the least value is where it changes its sign": _falls_and_rises_above,
}


def _roots(e: Expr, x: Symbol) -> list[Expr]:
    try:
        return list(within(SECONDS, sympy.solve, e, x) or ())
    except NotImplementedError:  # of equations that SymPy cannot solve
        return []


def low_points(difference: Expr, relation: str, given: Given) -> list[Expr]:
    """Return points that meet the conditions given, found by search with floating-point numbers, at which a claim about
    one variable may fail. For trigonometric functions, multiples of pi are among them, because bounds are met exactly
    there."""
    (x,) = difference.free_symbols
    function = sympy.lambdify(x, difference if relation[0] == ">" else -difference, "math")

    def value(point: Fraction) -> float:
        if given and not given.admits({str(x): Rational(point.numerator, point.denominator)}):
            return math.inf
        try:
            found = function(float(point))
        except (ArithmeticError, ValueError, TypeError, NameError):
            return math.inf
        return found if isinstance(found, int | float) and found == found else math.inf

    best = sorted((Fraction(n, 8) for n in range(-160, 161)), key=value)[:3]
    for step in range(4, 14):
        around = {p + Fraction(k, 2**step) for p in best for k in range(-4, 5)}
        best = sorted(around, key=value)[:3]
    exact = sorted((k * sympy.pi / 12 for k in range(-24, 25)), key=lambda p: value(Fraction(float(p))))[:2]
    return [*(exact if difference.has(TrigonometricFunction) else ()), *(
        Rational(p.numerator, p.denominator) for p in best)]


def _holds_within(f: Expr, x: Symbol, interval: tuple[Expr, Expr]) -> bool:
    """Report whether f >= 0 is proven at all points within an interval."""
    try:
        for whole in (False, True):
            translation = _Translation(whole)
            translation.place(f, interval)
            term, at = translation.term(f), translation.term(x)
            solver = z3.Solver()
            solver.set("timeout", MILLISECONDS)
            bounds = [sign * (at - translation.term(end)) > 0 for sign, end in zip((1, -1), interval, strict=True)
                if end.is_finite]
            solver.add(*translation.facts, *bounds, term < 0)
            if solver.check() == z3.unsat:
                return True
    except _Unsupported:
        pass
    return False


def _domain(f: Expr, x: Symbol) -> tuple[Expr, Expr] | None:
    """Return the ends of the interval on which f is defined and smooth, or None if it is not known to be one."""
    low, high = -sympy.oo, sympy.oo
    poles = []
    for part in sympy.preorder_traversal(f):
        if not part.has(x) or part == x or part.is_Add or part.is_Mul:
            continue
        if part.is_Pow and isinstance(part.exp, Rational):
            base, bounds = part.base, part.exp.q > 1
            poles += [base] if part.exp < 0 and not bounds else []
        elif isinstance(part, _SMOOTH):
            base, bounds = part.args[0], isinstance(part, sympy.log)
        else:
            return None
        if bounds:
            rate = sympy.diff(base, x)
            if not isinstance(rate, Rational) or rate == 0:
                return None
            end = -base.subs(x, 0) / rate
            if not isinstance(end, Rational):
                return None
            low, high = (max(low, end), high) if rate > 0 else (low, min(high, end))
    for base in poles:
        zeros = within(SECONDS, sympy.solveset, base, x, sympy.S.Reals)
        if not isinstance(zeros, sympy.FiniteSet | type(sympy.S.EmptySet)):
            return None
        if any(not isinstance(z, Rational) or low < z < high for z in zeros):
            return None
    return (low, high) if low < high else None
