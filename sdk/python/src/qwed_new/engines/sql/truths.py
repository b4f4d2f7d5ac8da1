"""The conditions of SQL as terms of Z3, in SQL's logic of three values."""

from __future__ import annotations

import re
from typing import Any

import z3
import z3.z3util
from sqlglot import exp

from qwed_new.engines.sql.sorts import (
    MAX_TEXT,
    NO,
    YES,
    Truth,
    Types,
    Unclear,
    Value,
    any_of,
    is_free,
    known,
    name_of,
    negated,
    source_of,
    text_of,
    varies,
)
from qwed_new.engines.sql.values import Values


class Truths(Values):
    """Translate conditions to terms. An expression that is not translated becomes a variable named by its SQL."""

    def __init__(self, condition: exp.Expression, types: Types) -> None:
        self.tested: list[Any] = []  # the nulls that the condition itself tests
        super().__init__(condition, types)

    def truth(self, node: exp.Expression) -> Truth:
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", False)
            return negated(self.truth(plain))
        if isinstance(node, exp.Paren):
            return self.truth(node.this)
        if isinstance(node, exp.And):
            a, b = self.truth(node.left), self.truth(node.right)
            return Truth(z3.And(a.true, b.true), z3.Or(a.false, b.false))
        if isinstance(node, exp.Or):
            return any_of([self.truth(node.left), self.truth(node.right)])
        if isinstance(node, exp.Xor):
            a, b = self.truth(node.left), self.truth(node.right)
            return Truth(
                z3.Or(z3.And(a.true, b.false), z3.And(a.false, b.true)),
                z3.Or(z3.And(a.true, b.true), z3.And(a.false, b.false))
            )
        if isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(
            row := node.this.this.unnest(), exp.Tuple):  # IS NOT NULL of a row: none of its parts is NULL
            some = z3.Or([self._tested_null(e) for e in row.expressions])
            return Truth(z3.Not(some), some)
        if isinstance(node, exp.Not):
            return negated(self.truth(node.this))
        if isinstance(node, exp.Boolean):
            return Truth(YES, NO) if node.this else Truth(NO, YES)
        if isinstance(node, exp.Null):
            return Truth(NO, NO)
        try:
            return self._predicate(node)
        except Unclear:
            return self._named_truth(node)

    def _predicate(self, node: exp.Expression) -> Truth:
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            a, b = self._pair(node.left, node.right)
            same = z3.Or(z3.And(a.null, b.null), z3.And(z3.Not(a.null), z3.Not(b.null), a.term == b.term))
            return Truth(same, z3.Not(same)) if isinstance(node, exp.NullSafeEQ) else Truth(z3.Not(same), same)
        if isinstance(node, exp.Between):
            low = self.compare(exp.GTE, node.this, node.args["low"])
            high = self.compare(exp.LTE, node.this, node.args["high"])
            return Truth(z3.And(low.true, high.true), z3.Or(low.false, high.false))
        if isinstance(node, exp.In) and _selects_all_of(node.args.get("query"), node.this):
            return self._unless_null(node.this)
        if isinstance(node, exp.In) and (witness := _of_own_row(node.args.get("query"), node.parent_select, node.this)):
            both = z3.And(self._unless_null(node.this).true, self.truth(witness).true)
            return self._at_least(both)
        if column := _within_extremes(node):
            return self._unless_null(column)
        if isinstance(node, exp.EQ) and isinstance(node.right, exp.Any) and _selects_all_of(node.right.this, node.left):
            return self._unless_null(node.left)
        if isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.SimilarTo) and _matches_all(node):
            return self._unless_null(node.this)
        if isinstance(node, exp.In) and node.expressions:
            return any_of([self.compare(exp.EQ, node.this, e) for e in node.expressions])
        if isinstance(node, exp.Like | exp.ILike | exp.Glob):
            return self._like(node)
        if type(node) in _COMPARE:
            return self.compare(type(node), node.left, node.right)
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Select) and (
            not source_of(node.this) or _reads_all_of_outer(node.this, node.parent_select)):
            return Truth(YES, NO)  # a SELECT without FROM has a row
        if isinstance(node, exp.Exists) and (witness := _of_own_row(node.this, node.parent_select)) is not None:
            return self._at_least(self.truth(witness).true)
        if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Column):
            value = self.value(node)
            if value.sort == "bool":
                return Truth(z3.And(z3.Not(value.null), value.term), z3.And(z3.Not(value.null), z3.Not(value.term)))
        if isinstance(
            node, exp.Literal | exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Case | exp.If | exp.Coalesce | exp.Nullif):
            value = self.value(node)
            if value.sort == "number":
                return known(value.null, value.term != 0)
        raise Unclear(node.sql())

    def _at_least(self, condition: Any) -> Truth:
        """A condition that is true if another one is, and may be true without it."""
        holds = z3.Or(condition, z3.FreshBool())
        return Truth(holds, z3.Not(holds))

    def _is(self, node: exp.Is) -> Truth:
        other = node.expression
        if isinstance(other, exp.Null):
            row = node.this.unnest()
            parts = row.expressions if isinstance(row, exp.Tuple) else [row]
            null = z3.And([self._tested_null(e) for e in parts])
            return Truth(null, z3.Not(null))
        if isinstance(other, exp.Boolean):
            truth = self.truth(node.this)
            held = truth.true if other.this else truth.false
            return Truth(held, z3.Not(held))
        a, b = self._pair(node.this, other)  # IS of SQLite compares
        same = z3.Or(z3.And(a.null, b.null), z3.And(z3.Not(a.null), z3.Not(b.null), a.term == b.term))
        return Truth(same, z3.Not(same))

    def _tested_null(self, node: exp.Expression) -> Any:
        null = self._null_of(node)
        self.tested += [n for n in self.nulls if any(n.eq(v) for v in z3.z3util.get_vars(null))]
        return null

    def _unless_null(self, node: exp.Expression) -> Truth:
        return known(self._null_of(node), YES)

    def compare(self, kind: type[exp.Expression], left: exp.Expression, right: exp.Expression) -> Truth:
        left, right = left.unnest(), right.unnest()
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and kind in (exp.EQ, exp.NEQ):
            if len(left.expressions) != len(right.expressions) or not left.expressions:
                raise Unclear("rows of different widths")
            pairs = [self.compare(exp.EQ, a, b) for a, b in zip(left.expressions, right.expressions, strict=True)]
            same = Truth(z3.And([p.true for p in pairs]), z3.Or([p.false for p in pairs]))
            return same if kind is exp.EQ else negated(same)
        a, b = self._pair(left, right)
        if a.sort == "bool" and kind not in (exp.EQ, exp.NEQ):
            a, b = (Value("number", z3.If(v.term, z3.RealVal(1), z3.RealVal(0)), v.null) for v in (a, b))
        return known(z3.Or(a.null, b.null), _COMPARE[kind](a.term, b.term))

    def _like(self, node: exp.Expression) -> Truth:
        pattern, subject = node.expression.unnest(), node.this.unnest()
        if subject == pattern:
            return self._unless_null(subject)
        text = text_of(pattern)
        if text is None or len(text) > MAX_TEXT or "\\" in text:
            raise Unclear(node.sql())
        is_glob = isinstance(node, exp.Glob)
        if is_glob and "[" in text:
            raise Unclear(node.sql())
        many, one = ("*", "?") if is_glob else ("%", "_")
        if text and set(text) == {many}:
            return self._unless_null(subject)
        if (constant := text_of(subject)) is not None and not subject.find(exp.Column):
            shape = "".join(".*" if c == many else "." if c == one else re.escape(c) for c in text)
            matches = bool(re.fullmatch(shape, constant[:1_000], re.S | (re.I if not is_glob else 0)))
            return Truth(z3.BoolVal(matches), z3.BoolVal(not matches))
        if isinstance(node, exp.ILike):
            raise Unclear(node.sql())
        value = self.value(subject, "text")
        if value.sort != "text":
            raise Unclear(node.sql())
        any_character = z3.AllChar(z3.ReSort(z3.StringSort()))
        parts = [
            z3.Full(z3.ReSort(z3.StringSort())) if c == many else any_character if c == one else z3.Re(z3.StringVal(c))
            for c in text]
        shape = z3.Concat(*parts) if len(parts) > 1 else parts[0] if parts else z3.Re(z3.StringVal(""))
        return known(value.null, z3.InRe(value.term, shape))

    def _named_truth(self, node: exp.Expression) -> Truth:
        if varies(node):
            self._fresh += 1
        if not is_free(node):
            self.opaque.add(node.sql())
        name = f"? {name_of(node)}" + (f" {self._fresh}" if varies(node) else "")
        return known(self._null(node), z3.Bool(name))


def _of_own_row(
    query: exp.Expression | None, outer: exp.Expression | None, selected: exp.Expression | None = None
) -> exp.Expression | None:
    """Return the condition of a subquery on a table of the statement itself, about the row of the statement: if it
    holds, the subquery has that row. selected is the column that the subquery must select."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    if not isinstance(query, exp.Select) or not isinstance(outer, exp.Select) or any(
        query.args.get(k) for k in ("limit", "having", "joins", "group", "offset")):
        return None
    inside = [t for t in query.find_all(exp.Table) if t.parent_select is query]
    around = {t.name.lower(): t.alias_or_name for t in outer.find_all(exp.Table) if t.parent_select is outer}
    where = query.args.get("where")
    if len(inside) != 1 or inside[0].name.lower() not in around or where is None:
        return None
    alias, own = inside[0].alias_or_name.lower(), around[inside[0].name.lower()]
    if selected is not None and not (
        isinstance(selected, exp.Column) and len(query.expressions) == 1
        and isinstance(query.expressions[0], exp.Column)
        and query.expressions[0].name.lower() == selected.name.lower()):
        return None

    def of_outer(node: exp.Expression) -> exp.Expression:
        inner = isinstance(node, exp.Column) and node.table.lower() in ("", alias)
        return exp.column(node.name, own) if inner else node

    return where.this.copy().transform(of_outer)


def _within_extremes(node: exp.Expression) -> exp.Expression | None:
    """Return the column of a comparison such as `id >= (SELECT min(id) FROM users)`, which holds for every row."""
    if not isinstance(node, exp.GTE | exp.LTE):
        return None
    for column, query, kind in (
        (node.left, node.right, exp.Min if isinstance(node, exp.GTE) else exp.Max),
        (node.right, node.left, exp.Max if isinstance(node, exp.GTE) else exp.Min)):
        select = query.unnest() if isinstance(query, exp.Subquery) else None
        if isinstance(select, exp.Select) and len(select.expressions) == 1 and isinstance(
            found := select.expressions[0].unalias(), kind) and isinstance(column, exp.Column):
            whole = exp.select(found.this.copy()).from_(*(t.copy() for t in select.find_all(exp.Table)))
            if not select.args.get("where") and _selects_all_of(whole, column):
                return column
    return None


def _selects_all_of(query: exp.Expression | None, column: exp.Expression) -> bool:
    """Whether a subquery without conditions reads the very column from a table of the statement itself."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    outer = column.parent_select
    if not (isinstance(query, exp.Select) and isinstance(column, exp.Column) and outer) or any(
        query.args.get(k) for k in ("where", "limit", "having", "joins")
    ):
        return False
    inside = {t.name.lower() for t in query.find_all(exp.Table)}
    around = _own_tables(outer)
    selected = query.expressions[0] if len(query.expressions) == 1 else None
    return isinstance(selected, exp.Column) and selected.name.lower() == column.name.lower() and bool(inside & around)


def _reads_all_of_outer(query: exp.Select, outer: exp.Select | None) -> bool:
    """Whether a subquery has a row for each row of the statement around it: it reads one of its tables whole."""
    if outer is None or any(query.args.get(k) for k in ("where", "limit", "having", "joins", "group", "offset")):
        return False
    inside = {t.name.lower() for t in query.find_all(exp.Table)}
    return bool(inside) and inside <= _own_tables(outer)


def _own_tables(query: exp.Select) -> set[str]:
    """The tables that a query reads itself, without those of its subqueries."""
    return {t.name.lower() for t in query.find_all(exp.Table) if t.parent_select is query}


_SAMPLES = ("", "a", "Z", "0", "zz9 -", "ä\n", "'x'")


def _matches_all(node: exp.Expression) -> bool:
    """Whether a constant pattern matches samples of every kind of text."""
    pattern = node.args.get("expression")
    if not (isinstance(pattern, exp.Literal) and pattern.is_string) or len(pattern.this) > 200:
        return False
    text = pattern.this
    if isinstance(node, exp.SimilarTo):
        text = "^(?:" + text.replace("%", ".*").replace("_", ".") + ")$"
    try:
        compiled = re.compile(text, re.S)
    except (re.error, RecursionError, OverflowError):
        return False
    return all(compiled.search(sample) for sample in _SAMPLES)


_COMPARE: dict[type[exp.Expression], Any] = {
    exp.EQ: lambda a, b: a == b, exp.NEQ: lambda a, b: a != b, exp.GT: lambda a, b: a > b, exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b, exp.LTE: lambda a, b: a <= b,
}  # fmt: skip
