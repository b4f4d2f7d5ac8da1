"""Measures of a column of numbers, and how they compare with claimed values. All arithmetic is in fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

DIGITS = 50  # significant digits of a value that has no finite decimal representation


@dataclass(frozen=True, slots=True)
class Root:
    """The square root of a fraction that is not negative; it is compared by its square."""

    square: Fraction


Value = Fraction | Root


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed value, and by how much the true one may differ.

    If half_open is set, the upper bound is excluded, as it is for values that are rounded half up.
    """

    value: Fraction
    tolerance: Fraction = Fraction(0)
    half_open: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """Numbers as whole multiples of 1/scale, so that a million of them are added quickly."""

    multiples: list[int]
    scale: int

    @classmethod
    def of(cls, numbers: list[Decimal]) -> Column:
        """Return numbers of at most a hundred digits without rounding them."""
        places = max([0, *(-e for n in numbers if isinstance(e := n.as_tuple().exponent, int))])
        with localcontext() as context:
            context.prec = 400
            return cls([int(n.scaleb(places)) for n in numbers], 10**places)

    def variance(self, divisor: int) -> Fraction:
        """Return the sum of the squared deviations from the mean, divided by divisor."""
        total, count = sum(self.multiples), len(self.multiples)
        squares = sum(n * n for n in self.multiples)
        return Fraction(squares * count - total * total, count * divisor * self.scale**2)


def measure(name: str, column: Column) -> Value:
    """Return a measure of a column; stdev and variance are those of a sample and need two numbers,
    unless "population " precedes them."""
    numbers, scale = column.multiples, column.scale
    if name in ("sum", "count"):
        return Fraction(sum(numbers), scale)
    if name in ("max", "min"):
        return Fraction(max(numbers) if name == "max" else min(numbers), scale)
    if name == "range":
        return Fraction(max(numbers) - min(numbers), scale)
    if name == "mean":
        return Fraction(sum(numbers), scale * len(numbers))
    if name == "median":
        ordered, half = sorted(numbers), len(numbers) // 2
        middle = 2 * ordered[half] if len(numbers) % 2 else ordered[half - 1] + ordered[half]
        return Fraction(middle, 2 * scale)
    spread = column.variance(len(numbers) - (0 if name.startswith("population ") else 1))
    return spread if name.endswith("variance") else Root(spread)


def compare(value: Value, other: Fraction) -> int:
    """Return -1, 0 or 1 as value is less than, equal to or greater than other."""
    if isinstance(value, Root):
        if other < 0:
            return 1
        value, other = value.square, other * other
    return (value > other) - (value < other)


def holds(relation: str, value: Value, claimed: list[Claimed]) -> bool:
    """Report whether a relation between a measure and the claimed values holds."""
    first = claimed[0]
    order = compare(value, first.value)
    if relation == "between":
        return order >= 0 and compare(value, claimed[1].value) <= 0
    if relation in ("=", "!="):
        equal = compare(value, first.value - first.tolerance) >= 0
        upper = compare(value, first.value + first.tolerance)
        equal = equal and (upper < 0 or (upper == 0 and not first.half_open))
        return equal == (relation == "=")
    return {">": order > 0, ">=": order >= 0, "<": order < 0, "<=": order <= 0}[relation]


def decimal(value: Value) -> tuple[Decimal, bool]:
    """Return a value as a decimal, and whether that is exact."""
    with localcontext() as context:
        context.prec = DIGITS
        if isinstance(value, Root):
            root = _exact_root(value.square)
            if root is None:
                return (Decimal(value.square.numerator) / value.square.denominator).sqrt(), False
            value = root
        rest = value.denominator
        twos = fives = 0
        while rest % 2 == 0:
            rest, twos = rest // 2, twos + 1
        while rest % 5 == 0:
            rest, fives = rest // 5, fives + 1
        if rest != 1:
            return Decimal(value.numerator) / value.denominator, False
        places = max(twos, fives)
        digits = value.numerator * 10**places // value.denominator
        context.prec = max(DIGITS, len(str(abs(digits))))
        return Decimal(digits).scaleb(-places), True


def _exact_root(square: Fraction) -> Fraction | None:
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    return Fraction(top, bottom) if Fraction(top * top, bottom * bottom) == square else None
