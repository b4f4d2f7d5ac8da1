"""Conditions that are always true: decided by Z3 over the types of columns, in SQL's logic of three values."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import z3
from sqlglot import exp

from qwed_new.engines.sql import samples
from qwed_new.engines.sql.postgres_tree import SYSTEM_COLUMNS
from qwed_new.engines.sql.sorts import REQUIRED, ROW, Types, Unclear, common_type
from qwed_new.engines.sql.truths import Truths

MILLISECONDS = 2_000
_CLAUSES = (exp.Where, exp.Having, exp.Join, exp.Qualify)


class Operands(NamedTuple):
    """Conditions and operands of OR, as SQL."""

    always: list[str]  # they hold for every row
    unclear: list[str]  # nothing is known about them: neither Z3 nor SQLite can compute them


def operands(statement: exp.Expression, types: Types | None = None, dialect: str = "") -> Operands:
    """The operands of OR, and the conditions, that do not restrict the rows of a statement or may not restrict them.
    types are those of columns, if they are known."""
    if dialect == "tsql":
        statement = statement.transform(_concatenated)
    found: list[str] = []
    unclear: list[str] = []
    rows = {t.alias_or_name.lower(): ROW + REQUIRED for t in statement.find_all(exp.Table, exp.Subquery)}
    types = {**rows, **(types or {})} if dialect in ("", "postgres") else types or {}
    if dialect == "sqlite":  # it does not enforce the sizes of types
        types = {c: re.sub(r"\([\d\s,]*\)", "", t) for c, t in types.items()}
    for node in statement.find_all(*_CLAUSES):
        condition = node.args.get("on") if isinstance(node, exp.Join) else node.this
        if not isinstance(condition, exp.Expression) or _is_lateral(node):
            continue
        own = _of_scope(node.parent, types)
        for part in _candidates(condition):
            if part.find_ancestor(*_CLAUSES) is not node:  # a condition of a subquery, which has other types
                continue
            is_operand = _columns(part.left) == _columns(part.right) if isinstance(
                part, exp.Or | exp.Xor) else part is not condition
            if part.sql() in found:
                continue
            if always_true(part, own) or (part is not condition and _is_constant(part, dialect)):
                found.append(part.sql())
            elif (is_operand or _columns(part)) and (holds := _holds_for_samples(part, own, dialect)) is not False:
                if holds:
                    found.append(part.sql())
                elif is_operand and not isinstance(part, exp.Or | exp.Xor) and not _may_be_false(part, own):
                    unclear.append(part.sql())
        if _is_constant(condition, dialect) and not _reads_rows(condition) and not _is_false(
            condition, own, dialect):
            found.append(condition.sql())
    return Operands(list(dict.fromkeys(found)), list(dict.fromkeys(unclear)))


def _of_scope(query: exp.Expression | None, types: Types) -> Types:
    """The types of columns as the tables of one query have them, before those of other queries in the statement."""
    own: dict[str, str] = {}
    for table in query.find_all(exp.Table) if query else ():
        prefix = table.alias_or_name.lower() + "."
        if table.parent_select not in (query, None):
            continue
        for name, sql in types.items():
            if name.startswith(prefix):
                own[name.removeprefix(prefix)] = common_type(own.get(name.removeprefix(prefix), sql), sql)
    found = {**types, **own}
    around = query
    while around is not None:
        if any(j.side for j in around.args.get("joins") or ()):  # a column may be NULL, even if its table has NOT NULL
            return {c: t.removesuffix(REQUIRED) for c, t in found.items()}
        around = around.parent_select
    return found


def _reads_rows(condition: exp.Expression) -> bool:
    """Report whether a condition has a subquery on a table, so that its value depends on the rows of that table."""
    return condition.find(exp.Subquery, exp.Exists, exp.Select) is not None and condition.find(exp.Table) is not None


def _is_false(condition: exp.Expression, types: Types, dialect: str) -> bool:
    """Report whether a condition without columns is known not to be true. Binary literals of MySQL are numbers or
    texts, as what they are compared with."""
    if dialect == "mysql" and condition.find(exp.HexString, exp.BitString):
        return False
    return _never_true(condition, types) and _holds_for_samples(condition, types, dialect) is False


def _concatenated(node: exp.Expression) -> exp.Expression:
    """Return + of SQL Server between texts as ||."""
    if isinstance(node, exp.Add) and any(
        isinstance(e, exp.DPipe) or (isinstance(e, exp.Literal) and e.is_string) for e in node.flatten()):
        return exp.DPipe(this=_concatenated(node.left), expression=node.right, safe=True)
    return node


def _is_lateral(node: exp.Expression) -> bool:
    """Whether a node is a join with LATERAL, whose condition is usually ON true."""
    return isinstance(node, exp.Join) and (isinstance(node.this, exp.Lateral) or bool(node.find(exp.Lateral)))


def _is_constant(condition: exp.Expression, dialect: str) -> bool:
    """Report whether an operand of OR contains no column and no parameter, so that it has the same value for every
    row. The system columns of PostgreSQL are not of the data."""
    open_parts = (exp.Column, exp.AggFunc, exp.Placeholder, exp.Parameter)
    own = [n for n in condition.find_all(*open_parts, exp.Where) if not _in_unfiltered_query(n, condition)
        and not _is_setting(n, dialect) and not (dialect == "postgres" and n.name in SYSTEM_COLUMNS)]
    return not own and not isinstance(condition, exp.Boolean | exp.Or | exp.Xor | exp.And)


def _is_setting(node: exp.Expression, dialect: str) -> bool:
    """Report whether a node is a variable of the server, such as @@version, or of a session of MySQL, such as @a."""
    return isinstance(node, exp.Parameter) and (dialect == "mysql" or
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


def _holds_for_samples(condition: exp.Expression, types: Types, dialect: str) -> bool | None:
    """Report whether no sample row falsifies a condition, for what Z3 does not know; None if SQLite does not know it
    either."""
    truths = Truths(condition, types)

    def is_empty(query: exp.Select) -> bool:
        where = query.args.get("where")
        return where is not None and not query.expressions[0].find(exp.AggFunc) and _never_true(where.this, types)

    holds = samples.always_true(condition, truths, is_empty, dialect)
    return None if holds is False and truths.mixes(condition) else holds


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


def _never_true(condition: exp.Expression, types: Types) -> bool:
    truths = Truths(condition, types)
    try:
        truth = truths.truth(condition)
    except (Unclear, z3.Z3Exception, RecursionError):
        return False
    return _unsatisfiable(*truths.bounds, truth.true)


def _may_be_false(condition: exp.Expression, types: Types) -> bool:
    """Report whether some row falsifies a condition of which Z3 knows every part."""
    truths = Truths(condition, types)
    try:
        truth = truths.truth(condition)
    except (Unclear, z3.Z3Exception, RecursionError):
        return False
    return not truths.opaque and not truths.mixes(condition) and not _unsatisfiable(*truths.bounds, truth.false)


def _unsatisfiable(*terms: Any) -> bool:
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*terms)
    return solver.check() == z3.unsat
