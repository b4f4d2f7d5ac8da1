"""Claims about matrices: computed exactly, if their entries are numbers or polynomials."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy import Expr, Matrix

from qwed_new.engines.math.build import Builder, Undefined
from qwed_new.engines.math.equality import Outcome
from qwed_new.engines.math.grammar import MathSyntaxError
from qwed_new.engines.math.tree import Apply, Claim, Name, Node
from qwed_new.limits import TooLarge

MAX_SIZE = 8
MAX_POWER = 16
_METHOD = "the matrices were computed exactly and compared entry by entry"
_FUNCTIONS = frozenset({"matrix", "det", "inv", "transpose", "trace"})
_JOINING: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def has_matrix(claim: Claim) -> bool:
    """Report whether a claim has a matrix, or a function of one."""
    return any(n.function in _FUNCTIONS for s in claim.sides for n in _applications(s))


def _applications(node: Node) -> Iterator[Apply]:
    if isinstance(node, Apply):
        yield node
        for argument in node.arguments:
            yield from _applications(argument)


def decide(claim: Claim) -> Outcome:
    """Decide the equality of two sides. An inequality of matrices has several readings."""
    if claim.relations != ("=",):
        raise MathSyntaxError("a claim about matrices has one '='")
    outcome = _equal(*(_value(s) for s in claim.sides))
    multiplied = [any(n.function == "mul" for n in _applications(s)) for s in claim.sides]
    if outcome.holds is False and multiplied in ([True, False], [False, True]):
        try:
            other = _equal(*(_value(s, by_entry=True) for s in claim.sides))
        except (MathSyntaxError, Undefined):
            return outcome
        if other.holds:
            raise MathSyntaxError("'*' between matrices is their product here; this claim multiplies entry by entry")
    return outcome


def _equal(left: Any, right: Any) -> Outcome:
    if isinstance(left, Matrix) != isinstance(right, Matrix):
        raise MathSyntaxError("a matrix is compared with a number")
    if not isinstance(left, Matrix):
        left, right = Matrix([[left]]), Matrix([[right]])
    evidence = {"left": str(left.tolist()), "right": str(right.tolist())}
    if left.shape != right.shape:
        return Outcome(False, _METHOD, f"the shapes {left.shape} and {right.shape} differ", evidence)
    for at, (a, b) in enumerate(zip(left, right, strict=True)):
        if sympy.expand(a - b) != 0:  # a polynomial that is not zero has a point at which it is not zero
            row, column = divmod(at, left.shape[1])
            reason = f"the entries in row {row + 1} and column {column + 1} differ: {a} and {b}"
            return Outcome(False, _METHOD, reason, evidence)
    return Outcome(True, _METHOD, "", evidence)


def _value(node: Node, by_entry: bool = False) -> Any:
    """Return a matrix or an expression."""
    if not isinstance(node, Apply) or not any(n.function in _FUNCTIONS for n in _applications(node)):
        if node == Name("i"):
            raise MathSyntaxError("'I' may be a matrix or a number: write the entries")
        return _entry(node)
    if node.function == "matrix":
        return _matrix(node)
    values = [_value(a, by_entry) for a in node.arguments if a != Name("var:T")]
    first = values[0]
    if node.function in ("det", "inv", "transpose", "trace", "abs"):
        if not isinstance(first, Matrix):
            raise MathSyntaxError(f"{node.function} of what is not a matrix")
        return _of_matrix(node.function, first)
    if node.function == "neg":
        return -first
    if node.function == "pow" and isinstance(first, Matrix):
        return first.T if len(values) == 1 else _power(first, values[1])
    if node.function not in _JOINING:
        raise MathSyntaxError(f"{node.function} of a matrix")
    return _joined(node.function, first, values[1], by_entry)


def _matrix(node: Apply) -> Matrix:
    rows = [[_entry(e) for e in row.arguments] for row in node.arguments]  # type: ignore[union-attr]
    if len({len(r) for r in rows}) != 1:
        raise MathSyntaxError("the rows of a matrix have different lengths")
    if max(len(rows), len(rows[0])) > MAX_SIZE:
        raise TooLarge(f"a matrix has more than {MAX_SIZE} rows or columns")
    return Matrix(rows)


def _entry(node: Node) -> Expr:
    value = sympy.expand(Builder(real=True).build(node))
    polynomial = value.is_polynomial(*value.free_symbols) and all(
        c.is_Rational for c in sympy.Poly(value, *value.free_symbols).coeffs()) if value.free_symbols else (
        value.is_Rational)
    if not polynomial:
        raise MathSyntaxError("a claim about matrices is decided for rational numbers and polynomials")
    return value


def _of_matrix(function: str, matrix: Matrix) -> Any:
    if function == "transpose":
        return matrix.T
    if matrix.rows != matrix.cols:
        raise Undefined(f"{function} of a matrix that is not square")
    if function == "trace":
        return sympy.expand(matrix.trace())
    determinant = sympy.expand(matrix.det(method="berkowitz"))
    if function in ("det", "abs"):
        return determinant
    if matrix.free_symbols:
        raise MathSyntaxError("the inverse of a matrix with variables")
    if determinant == 0:
        raise Undefined("a matrix with the determinant 0 has no inverse")
    return matrix.inv()


def _power(matrix: Matrix, power: Any) -> Matrix:
    if not isinstance(power, sympy.Integer) or abs(power) > MAX_POWER:
        raise MathSyntaxError(f"a power of a matrix is a whole number up to {MAX_POWER}")
    if matrix.rows != matrix.cols:
        raise Undefined("a power of a matrix that is not square")
    base = _of_matrix("inv", matrix) if power < 0 else matrix
    result = sympy.eye(matrix.rows)
    for _ in range(abs(int(power))):
        result = (result * base).expand()
    return result


def _joined(function: str, left: Any, right: Any, by_entry: bool) -> Any:
    both = isinstance(left, Matrix) and isinstance(right, Matrix)
    if function == "div" and isinstance(right, Matrix):
        raise MathSyntaxError("division by a matrix: write inv(…)")
    if function == "div" and not right.is_Rational:
        raise MathSyntaxError("a matrix divided by what has variables")
    if function == "div" and right == 0:
        raise Undefined("a division by zero")
    if function in ("add", "sub") and not both and (isinstance(left, Matrix) or isinstance(right, Matrix)):
        raise MathSyntaxError("a matrix and a number are added")
    if both and (left.cols != right.rows if function == "mul" and not by_entry else left.shape != right.shape):
        raise Undefined(f"matrices of the shapes {left.shape} and {right.shape} are joined")
    if both and function == "mul" and by_entry:
        return left.multiply_elementwise(right).expand()
    return _JOINING[function](left, right).expand()
