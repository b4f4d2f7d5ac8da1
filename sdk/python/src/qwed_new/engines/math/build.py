"""From the typed tree to SymPy objects, with every number bounded before it is computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import sympy
from sympy import Expr, Integer, Rational, Symbol

from qwed_new.engines.math import checks
from qwed_new.engines.math.grammar import MathSyntaxError
from qwed_new.engines.math.tree import Apply, Name, Node, Number
from qwed_new.limits import TooLarge

MAX_BITS = 40_000
MAX_FACTORIAL = 2_000
MAX_TERMS = 10_000

_CONSTANTS = {"pi": sympy.pi, "e": sympy.E, "i": sympy.I, "oo": sympy.oo, "tau": 2 * sympy.pi}


class Undefined(ValueError):
    """The expression has no value, as 1/0 has none."""


class TwoConventions(MathSyntaxError):
    """The expression has one value for some readers and another for others."""


class Builder:
    """Build expressions over symbols that are real, positive or complex, depending on `assume`. Variables with a value
    are replaced by it."""

    def __init__(self, values: Mapping[str, Expr] | None = None, **assume: bool) -> None:
        self._values, self._assume = values or {}, assume

    def symbol(self, name: str) -> Any:
        """The value of a variable, or its symbol."""
        return self._values[name] if name in self._values else Symbol(name, **self._assume)

    def build(self, node: Node) -> Expr:
        """Return the expression of a tree. Raise Undefined or TooLarge if it has none."""
        if isinstance(node, Number):
            return Rational(str(node.value))
        if isinstance(node, Name):
            return self.symbol(node.name[4:]) if node.name.startswith("var:") else _CONSTANTS[node.name]
        if node.function in _BINDERS:
            return _BINDERS[node.function](self, node)
        if node.function not in _OPERATIONS and node.function not in ("cbrt", "root"):
            raise MathSyntaxError(f"{node.function} is decided in a claim of two sides with '=' only")
        arguments = [self.build(a) for a in node.arguments]
        if self._assume and node.function in ("cbrt", "root"):
            value = _real_root(*arguments) if node.function == "root" else _real_root(*arguments, Integer(3))
        else:
            value = _OPERATIONS[node.function](*arguments)
        if value is sympy.zoo or value is sympy.nan or value.has(sympy.zoo, sympy.nan):
            raise Undefined(f"{node.function} has no value there")
        _check_size(value)
        return value

    def variable(self, node: Node) -> Symbol:
        """The symbol that a node names."""
        if isinstance(node, Name) and node.name.startswith("var:"):
            return self.symbol(node.name[4:])
        raise MathSyntaxError("a variable is wanted there")


def _check_size(value: Expr) -> None:
    if isinstance(value, Rational) and max(abs(value.p), value.q).bit_length() > MAX_BITS:
        raise TooLarge(f"a number has more than {MAX_BITS} bits")


def bits_of(value: Expr) -> int:
    """About how many bits a rational number needs."""
    return max(abs(value.p), value.q).bit_length() if isinstance(value, Rational) else 1


def _pow(base: Expr, exponent: Expr) -> Expr:
    if exponent.is_number and isinstance(exponent, Rational):
        if bits_of(exponent) > 64:
            raise TooLarge("an exponent has more than 64 bits")
        size = abs(exponent.p) // exponent.q
        if isinstance(base, Rational) and base not in (0, 1, -1) and size * bits_of(base) > MAX_BITS:
            raise TooLarge(f"a power would have more than {MAX_BITS} bits")
        if not isinstance(base, Rational) and size > 1_000 and not base.is_Symbol and base is not sympy.E:
            raise TooLarge("an exponent is larger than 1000")
        if base == 0 and exponent < 0:
            raise Undefined("division by zero")
        if base == 0 and exponent == 0:
            raise Undefined("zero to the power of zero")
        if isinstance(base, Rational) and base < 0 and exponent.q > 1 and exponent.q % 2:
            raise TwoConventions(
                "a negative number to the power 1/3 has a real and a complex value: write cbrt(a) or root(a, n)")
    elif exponent.is_number:
        magnitude = abs(complex(exponent.evalf(15))) if exponent.is_finite else math.inf
        if magnitude > 10_000:
            raise TooLarge("an exponent is larger than 10000")
    return base**exponent


def _div(a: Expr, b: Expr) -> Expr:
    if b.is_number and (b == 0 or (not b.is_Rational and b.equals(0))):
        raise Undefined("division by zero")
    return a / b


def _factorial(n: Expr) -> Expr:
    if n.is_Rational and (abs(n.p) > MAX_FACTORIAL):
        raise TooLarge(f"a factorial is of more than {MAX_FACTORIAL}")
    if n.is_Rational and (n.q != 1 or n.p < 0):
        raise Undefined("a factorial is of whole numbers from 0 on")
    return sympy.factorial(n)


def _binomial(n: Expr, k: Expr) -> Expr:
    for value in (n, k):
        if value.is_Rational and abs(value.p) > 4 * MAX_FACTORIAL:
            raise TooLarge("a binomial coefficient is too large")
    return sympy.binomial(n, k)


def _log(a: Expr, base: Expr | None = None) -> Expr:
    if a == 0:
        raise Undefined("the logarithm of zero")
    if base is None:
        return sympy.log(a)
    if base in (0, 1):
        raise Undefined("a logarithm's base is neither 0 nor 1")
    if isinstance(a, Rational) and isinstance(base, Rational) and a > 0 and base > 0:
        for exponent in range(-64, 65):
            if abs(exponent) * bits_of(base) < MAX_BITS and base**exponent == a:
                return Integer(exponent)
    return sympy.log(a) / sympy.log(base)


def _mod(a: Expr, b: Expr) -> Expr:
    if b == 0:
        raise Undefined("remainder of a division by zero")
    return sympy.Mod(a, b)


def _round(a: Expr, digits: Expr | None = None) -> Expr:
    if digits is not None and not (isinstance(digits, Integer) and abs(digits) <= 50):
        raise MathSyntaxError("round takes a number of digits from -50 to 50")
    places = int(digits) if digits is not None else 0
    scale = Rational(10) ** places
    return sympy.sign(a) * sympy.floor(abs(a) * scale + Rational(1, 2)) / scale


def _gamma(a: Expr) -> Expr:
    if a.is_Rational and abs(a) > MAX_FACTORIAL:
        raise TooLarge(f"gamma is of at most {MAX_FACTORIAL}")
    return sympy.gamma(a)


def _root(a: Expr, n: Expr) -> Expr:
    if n == 0:
        raise Undefined("a root's degree is not 0")
    if a.is_number and a.is_negative and isinstance(n, Integer) and n % 2:
        return -_pow(-a, 1 / n)  # the real root
    return _pow(a, 1 / n)


def _real_root(a: Expr, n: Expr) -> Expr:
    """A root of an expression whose variables are real, which of an odd degree is real for negative values too."""
    if a.is_number or a.is_nonnegative or not isinstance(n, Integer) or n % 2 == 0:
        return _root(a, n)
    if a.is_negative:
        return -_root(-a, n)
    return sympy.sign(a) * _root(sympy.Abs(a), n)


_OPERATIONS: dict[str, Callable[..., Expr]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": _div, "neg": lambda a: -a,
    "pow": _pow,
    "exp": lambda a: _pow(sympy.E, a), "ln": _log, "log": _log,
    "log2": lambda a: _log(a, Integer(2)), "log10": lambda a: _log(a, Integer(10)),
    "sqrt": lambda a: _pow(a, Rational(1, 2)), "cbrt": lambda a: _root(a, Integer(3)), "root": _root,
    "abs": sympy.Abs, "sign": sympy.sign, "floor": sympy.floor, "ceil": sympy.ceiling,
    "factorial": _factorial, "binomial": _binomial, "gamma": _gamma, "erf": sympy.erf,
    "gcd": lambda *a: sympy.gcd(list(a)), "lcm": lambda *a: sympy.lcm(list(a)), "min": sympy.Min, "max": sympy.Max,
    "mod": _mod, "round": _round, "atan2": sympy.atan2, "re": sympy.re, "im": sympy.im, "conjugate": sympy.conjugate,
    **{name: getattr(sympy, name) for name in
       "sin cos tan cot sec csc sinh cosh tanh coth asin acos atan acot asec acsc asinh acosh atanh".split()},
}  # fmt: skip


def _diff(builder: Builder, node: Apply) -> Expr:
    body = builder.build(node.arguments[0])
    symbol = builder.variable(node.arguments[1]) if len(node.arguments) > 1 else only_symbol(body)
    order = builder.build(node.arguments[2]) if len(node.arguments) > 2 else Integer(1)
    if not (isinstance(order, Integer) and 0 <= order <= 20):
        raise MathSyntaxError("the order of a derivative is a whole number up to 20")
    return sympy.diff(body, symbol, int(order))


def _integral(builder: Builder, node: Apply) -> Expr:
    body = builder.build(node.arguments[0])
    if len(node.arguments) == 3:
        raise MathSyntaxError("an integral takes an expression, a variable and both limits")
    symbol = builder.variable(node.arguments[1]) if len(node.arguments) > 1 else only_symbol(body)
    if len(node.arguments) < 4:
        return sympy.integrate(body, symbol)
    low, high = builder.build(node.arguments[2]), builder.build(node.arguments[3])
    value = sympy.integrate(body, (symbol, low, high))
    if value.is_number and value.is_finite and not value.has(sympy.Integral) and low.is_number and high.is_number:
        checks.check_integral(body, symbol, low, high, value)
    return value


def _limit(builder: Builder, node: Apply) -> Expr:
    """Return the limit from both sides, or from one side if the fourth argument is +1 or -1 or the expression is real
    on that side only."""
    body, symbol = builder.build(node.arguments[0]), builder.variable(node.arguments[1])
    point = builder.build(node.arguments[2])
    if len(node.arguments) == 4:
        sign = builder.build(node.arguments[3])
        if sign not in (1, -1) or not point.is_finite:
            raise MathSyntaxError("a limit from one side has a finite point, and 1 for the right or -1 for the left")
        value = sympy.limit(body, symbol, point, "+" if sign == 1 else "-")
        checks.check_limit(body, symbol, point, int(sign), value)
        return value
    if not point.is_finite:
        return sympy.limit(body, symbol, point)
    right, left = (sympy.limit(body, symbol, point, side) for side in "+-")
    if right == left or sympy.simplify(right - left) == 0:
        return right
    real = {side: checks.is_real_beside(body, symbol, point, sign) for side, sign in (("+", 1), ("-", -1))}
    if real["+"] and real["-"] is False:
        return right
    if real["-"] and real["+"] is False:
        return left
    raise Undefined("the limits from the left and from the right differ")


def _series(make: Callable[..., Any]) -> Callable[[Builder, Apply], Expr]:
    def build(builder: Builder, node: Apply) -> Expr:
        body = builder.build(node.arguments[0])
        name = node.arguments[1]
        if not (isinstance(name, Name)):
            raise MathSyntaxError("a sum takes an expression, an index and both limits")
        symbol = builder.variable(name)
        low, high = builder.build(node.arguments[2]), builder.build(node.arguments[3])
        if not isinstance(low, Integer) or (high.is_number and not isinstance(high, Integer) and high is not sympy.oo):
            raise MathSyntaxError("the limits of a sum are whole numbers, the upper one a name or infinity too")
        if isinstance(high, Integer) and high < low - 1:
            raise MathSyntaxError("the upper limit of a sum is below the lower one, which has two conventions")
        if isinstance(high, Integer) and high - low > MAX_TERMS:
            raise TooLarge(f"a sum has more than {MAX_TERMS} terms")
        index = sympy.Dummy("k", integer=True)
        return make(body.subs(symbol, index), (index, low, high)).doit()

    return build


_BINDERS: dict[str, Callable[[Builder, Apply], Expr]] = {
    "diff": _diff, "integral": _integral, "limit": _limit, "sum": _series(sympy.Sum), "product": _series(sympy.Product),
}  # fmt: skip


def only_symbol(expression: Expr) -> Symbol:
    """Return the variable for an operation that names none: the only one, or x."""
    symbols = sorted(expression.free_symbols, key=str)
    named = [s for s in symbols if str(s) == "x"]
    if len(symbols) == 1 or named:
        return named[0] if named else symbols[0]
    if not symbols:
        return Symbol("x")
    raise MathSyntaxError(f"which of the variables {', '.join(map(str, symbols))} is meant is not said")


def _corners(node: Node) -> list[Node]:
    """Return the subexpressions that are zero at points where an expression has no derivative."""
    if not isinstance(node, Apply):
        return []
    own = [node.arguments[0]] if node.function in ("abs", "sign") else []
    return own + [c for a in node.arguments for c in _corners(a)]


def denominators(node: Node) -> list[Node]:
    """Return the subexpressions that must not be zero in the expression as written."""
    if not isinstance(node, Apply):
        return []
    found = [d for a in node.arguments for d in denominators(a)]
    if node.function == "div" and not isinstance(node.arguments[1], Number):
        found.append(node.arguments[1])
    if node.function in ("ln", "log", "log2", "log10"):
        found.append(node.arguments[0])
    if node.function == "pow" and isinstance(node.arguments[1], Number) and node.arguments[1].value <= 0:
        found.append(node.arguments[0])
    if node.function == "diff":
        found += _corners(node.arguments[0])
    if node.function == "pow" and isinstance(node.arguments[1], Apply) and node.arguments[1].function == "neg":
        found.append(node.arguments[0])
    return found
