"""The math engine: text → typed tree → SymPy objects → a verdict."""

from qwed_new.engines.math.decide import verify_math, verify_math_expression
from qwed_new.engines.math.grammar import MathSyntaxError, parse

__all__ = ["MathSyntaxError", "parse", "verify_math", "verify_math_expression"]
