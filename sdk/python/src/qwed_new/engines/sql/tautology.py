"""Conditions that are always true: decided by Z3 over the types of columns, in SQL's logic of three values."""

from __future__ import annotations

from typing import Any

import z3
from sqlglot import exp

from qwed_new.engines.sql import samples
from qwed_new.engines.sql.sorts import REQUIRED, Types, Unclear
from qwed_new.engines.sql.truths import Truths

MILLISECONDS = 2_000


def tautologies(statement: exp.Expression, types: Types | None = None, dialect: str = "") -> list[str]:
    """The conditions, or operands of OR, that hold for every row; as SQL. types are those of columns, if they are
    known."""
    found: list[str] = []
    if any(j.side for j in statement.find_all(exp.Join)):  # a column may be NULL there, whatever its table says
        types = {c: t.removesuffix(REQUIRED) for c, t in (types or {}).items()}
    for node in statement.find_all(exp.Where, exp.Having, exp.Join, exp.Qualify):
        condition = node.args.get("on") if isinstance(node, exp.Join) else node.this
        if not isinstance(condition, exp.Expression) or _is_lateral(node):
            continue
        for part in _candidates(condition):
            is_operand = _columns(part.left) == _columns(part.right) if isinstance(
                part, exp.Or | exp.Xor) else part is not condition
            if part.sql() not in found and (
                always_true(part, types) or (part is not condition and _is_constant(part))
                or (is_operand and _holds_for_samples(part, types, dialect))
            ):
                found.append(part.sql())
        if _is_constant(condition) and not condition.find(exp.Subquery, exp.Exists) and not _never_true(
            condition, types):
            found.append(condition.sql())
    return list(dict.fromkeys(found))


def _is_lateral(node: exp.Expression) -> bool:
    """Whether a node is a join with LATERAL, whose condition is usually ON true."""
    return isinstance(node, exp.Join) and (isinstance(node.this, exp.Lateral) or bool(node.find(exp.Lateral)))


def _is_constant(condition: exp.Expression) -> bool:
    """Report whether an operand of OR contains no column and no parameter, so that it has the same value for every
    row."""
    open_parts = (exp.Column, exp.AggFunc, exp.Placeholder, exp.Parameter)
    own = [n for n in condition.find_all(*open_parts, exp.Where) if not _in_unfiltered_query(n, condition)
        and not _is_setting(n)]
    return not own and not isinstance(condition, exp.Boolean | exp.Or | exp.Xor | exp.And)


def _is_setting(node: exp.Expression) -> bool:
    """Whether a node is a variable of the server, such as @@version."""
    return isinstance(node, exp.Parameter) and (
        isinstance(node.this, exp.Parameter) or isinstance(node.parent, exp.Parameter))


def _in_unfiltered_query(node: exp.Expression, within: exp.Expression) -> bool:
    """Whether a node is in a subquery without WHERE, which has the same result for every row."""
    query = node.find_ancestor(exp.Select)
    return query is not None and query is not within.parent_select and not query.args.get("where")


def _candidates(condition: exp.Expression) -> list[exp.Expression]:
    out = [condition]
    for node in condition.find_all(exp.Or, exp.Xor):
        out += [node, node.left, node.right]
    out += [n.this for n in condition.find_all(exp.Not) if isinstance(n.this, exp.Paren)]
    return [o for o in out if isinstance(o, exp.Expression)]


def _columns(node: exp.Expression) -> set[str]:
    return {c.sql() for c in node.find_all(exp.Column)}


def _holds_for_samples(condition: exp.Expression, types: Types | None, dialect: str) -> bool:
    """Report whether no sample row falsifies a condition, for what the truths does not know."""
    truths = Truths(condition, types or {})

    def is_empty(query: exp.Select) -> bool:
        where = query.args.get("where")
        return where is not None and not query.expressions[0].find(exp.AggFunc) and _never_true(where.this, types)

    return samples.always_true(condition, truths.sort, truths.limits, is_empty, dialect)


def always_true(condition: exp.Expression, types: Types | None = None) -> bool:
    """Report whether a condition is never false, and true for all rows with NULL only in columns that it tests for
    NULL."""
    truths = Truths(condition, types or {})
    try:
        truth = truths.truth(condition)
    except (Unclear, z3.Z3Exception, RecursionError):
        return False
    without_null = [z3.Not(n) for n in truths.nulls if not any(n.eq(t) for t in truths.tested)]
    return _unsatisfiable(*truths.bounds, *without_null, z3.Not(truth.true)) and _unsatisfiable(
        *truths.bounds, truth.false)


def _never_true(condition: exp.Expression, types: Types | None) -> bool:
    truths = Truths(condition, types or {})
    try:
        truth = truths.truth(condition)
    except (Unclear, z3.Z3Exception, RecursionError):
        return False
    return _unsatisfiable(*truths.bounds, truth.true)


def _unsatisfiable(*terms: Any) -> bool:
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*terms)
    return solver.check() == z3.unsat
