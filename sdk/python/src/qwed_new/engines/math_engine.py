"""The import path of the math engine that programs use."""

from qwed_new.engines.math import verify_math, verify_math_expression

__all__ = ["verify_math", "verify_math_expression"]
