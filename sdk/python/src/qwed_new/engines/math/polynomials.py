"""Inequalities between polynomials, decided by Z3 over the real numbers."""

from __future__ import annotations

from typing import Any

import sympy
import z3
from sympy import Expr, Integer, Rational

from qwed_new.engines.math.equality import Outcome

MILLISECONDS = 3_000


def refute_order(difference: Expr, relation: str) -> Outcome:
    """Decide `difference relation 0` for all real values, if difference is a polynomial."""
    symbols = sorted(difference.free_symbols, key=str)
    method = "Z3 over the real numbers"
    if not difference.is_polynomial(*symbols):
        return Outcome(None, "none", "no counter-example was found, and only polynomials can be proven")
    reals = {s: z3.Real(str(s)) for s in symbols}
    try:
        term = _term(sympy.expand(difference), reals)
    except ValueError as error:
        return Outcome(None, method, str(error))
    holds = {"<": term < 0, "<=": term <= 0, ">": term > 0, ">=": term >= 0}[relation]
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(z3.Not(holds))
    answer = solver.check()
    if answer == z3.unsat:
        return Outcome(True, method, "", {"domain": "real"})
    if answer == z3.sat:
        model = solver.model()
        point = {str(s): str(model.eval(r, model_completion=True)) for s, r in reals.items()}
        return Outcome(False, method, "the claim fails at a point", {"counterexample": point})
    return Outcome(None, method, f"the solver did not decide within {MILLISECONDS / 1000:g} seconds")


def _term(expression: Expr, reals: dict[Any, Any]) -> Any:
    if expression in reals:
        return reals[expression]
    if isinstance(expression, Rational):
        return z3.RealVal(f"{expression.p}/{expression.q}")
    parts = [_term(a, reals) if not (expression.is_Pow and i == 1) else a for i, a in enumerate(expression.args)]
    if expression.is_Add:
        return z3.Sum(parts)
    if expression.is_Mul:
        return z3.Product(parts)
    if expression.is_Pow and isinstance(expression.args[1], Integer) and 0 < int(expression.args[1]) <= 12:
        return z3.Product([parts[0]] * int(expression.args[1]))
    raise ValueError("only polynomials with rational coefficients and degrees up to 12 can be proven")
