"""Conditions that are always true: decided by Z3 over the types of columns, in SQL's logic of three values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import z3
import z3.z3util
from sqlglot import exp

from qwed_new.engines.sql import samples

MILLISECONDS = 2_000
_MAX_TEXT = 200  # characters of a string constant
_MAX_POWER = 6

Types = Mapping[str, str]  # columns in lower case with the SQL of their types, and REQUIRED if they are never NULL
REQUIRED = " NOT NULL"


class _Unclear(ValueError):
    """A part that is not translated."""


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
    """Report whether no sample row falsifies a condition, for what the translator does not know."""
    translator = _Translator(condition, types or {})

    def is_empty(query: exp.Select) -> bool:
        where = query.args.get("where")
        return where is not None and not query.expressions[0].find(exp.AggFunc) and _never_true(where.this, types)

    return samples.always_true(condition, translator.sort, translator.limits, is_empty, dialect)


def always_true(condition: exp.Expression, types: Types | None = None) -> bool:
    """Report whether a condition is never false, and true for all rows with NULL only in columns that it tests for
    NULL."""
    translator = _Translator(condition, types or {})
    try:
        truth = translator.truth(condition)
    except (_Unclear, z3.Z3Exception, RecursionError):
        return False
    without_null = [z3.Not(n) for n in translator.nulls if not any(n.eq(t) for t in translator.tested)]
    return _unsatisfiable(*translator.bounds, *without_null, z3.Not(truth.true)) and _unsatisfiable(
        *translator.bounds, truth.false)


def _never_true(condition: exp.Expression, types: Types | None) -> bool:
    translator = _Translator(condition, types or {})
    try:
        truth = translator.truth(condition)
    except (_Unclear, z3.Z3Exception, RecursionError):
        return False
    return _unsatisfiable(*translator.bounds, truth.true)


def _unsatisfiable(*terms: Any) -> bool:
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*terms)
    return solver.check() == z3.unsat


class _Truth(NamedTuple):
    """A condition; NULL if it is neither true nor false."""

    true: Any
    false: Any


class _Value(NamedTuple):
    sort: str  # number, text, bool, or order for types that are only compared, such as dates
    term: Any
    null: Any


_YES, _NO = z3.BoolVal(True), z3.BoolVal(False)

_INTEGERS = {
    "TINYINT": 8, "SMALLINT": 16, "INT2": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 32, "INT4": 32, "SERIAL": 32,
    "BIGINT": 64, "INT8": 64, "BIGSERIAL": 64,
}  # fmt: skip
_ROW_NAMES = frozenset({"rownum", "rowid"})  # of Oracle and SQLite: each row has one
_NUMBERS = frozenset("DECIMAL NUMERIC NUMBER REAL FLOAT DOUBLE MONEY FLOAT4 FLOAT8 DEC".split())
_TEXTS = frozenset("TEXT VARCHAR CHAR CHARACTER NVARCHAR VARCHAR2 NVARCHAR2 NCHAR CLOB CITEXT STRING BPCHAR".split())


def _sort_of_type(sql: str) -> str:
    base = re.split(r"[\s(]", sql.strip().upper())[0]
    if base in _INTEGERS or base in _NUMBERS:
        return "number"
    if base in _TEXTS:
        return "text"
    return "bool" if base in ("BOOL", "BOOLEAN") else "order"


class _Translator:
    """Translate conditions to terms. An expression that is not translated becomes a variable named by its SQL."""

    def __init__(self, condition: exp.Expression, types: Types) -> None:
        self._types = types
        self._texts: dict[str, Any] = {}
        self._fresh = 0
        self.bounds: list[Any] = []  # facts, such as that no length is negative
        self.nulls: list[Any] = []
        self.tested: list[Any] = []  # the nulls that the condition itself tests
        self._sorts: dict[str, str] = {}
        for _ in range(2):
            self._infer(condition)

    # Sorts of columns whose types are not known: from what they are compared with.

    def _infer(self, condition: exp.Expression) -> None:
        for node in condition.walk():
            if isinstance(node, exp.And | exp.Or | exp.Not | exp.Xor):
                for operand in node.iter_expressions():
                    self._learn(operand, "bool")
            elif isinstance(
                node, exp.Like | exp.ILike | exp.Glob | exp.RegexpLike | exp.SimilarTo | exp.DPipe | exp.Concat):
                for operand in node.iter_expressions():
                    self._learn(operand, "text")
            elif isinstance(node, exp.Length | exp.Upper | exp.Lower):
                self._learn(node.this, "text")
            elif isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Pow | exp.Abs):
                for operand in node.iter_expressions():
                    self._learn(operand, "number")
            elif isinstance(node, exp.Binary | exp.Between | exp.In):
                operands = list(node.iter_expressions())
                for sort in (s for o in operands if (s := self.sort(o))):
                    for operand in operands:
                        self._learn(operand, sort)
                    break

    def _learn(self, node: exp.Expression, sort: str) -> None:
        node = node.unnest()
        if isinstance(node, exp.Column) and not self._type(node):
            self._sorts.setdefault(_name(node), sort)

    def _type(self, column: exp.Column) -> str:
        return self._types.get(column.sql().lower()) or self._types.get(column.name.lower()) or ""

    def sort(self, node: exp.Expression) -> str:
        """The sort of a node, or "" if it is not known."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            if (sql := self._type(node)) and sql.upper() != "UNKNOWN":
                return _sort_of_type(sql)
            return self._sorts.get(_name(node), "")
        if isinstance(node, exp.Literal):
            return "text" if node.is_string and _number(node.this) is None else "" if node.is_string else "number"
        if isinstance(node, exp.Boolean):
            return "bool"
        if isinstance(node, exp.Cast):
            return _sort_of_type(node.to.sql())
        if isinstance(
            node, exp.DPipe | exp.Concat | exp.Upper | exp.Lower | exp.Substring | exp.Trim | exp.Chr | exp.Replace | exp.Left
            | exp.Right | exp.Collate):
            return "text"
        if isinstance(
            node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Pow | exp.Abs | exp.Length | exp.Count
            | exp.Neg | exp.Sum | exp.StrPosition | exp.IntDiv | exp.Sqrt | exp.Sign | exp.Floor | exp.Ceil | exp.Exp
            | exp.Sin | exp.Cos):
            return "number"
        return ""

    def truth(self, node: exp.Expression) -> _Truth:
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", False)
            return _not(self.truth(plain))
        if isinstance(node, exp.Paren):
            return self.truth(node.this)
        if isinstance(node, exp.And):
            a, b = self.truth(node.left), self.truth(node.right)
            return _Truth(z3.And(a.true, b.true), z3.Or(a.false, b.false))
        if isinstance(node, exp.Or):
            return _or([self.truth(node.left), self.truth(node.right)])
        if isinstance(node, exp.Xor):
            a, b = self.truth(node.left), self.truth(node.right)
            return _Truth(
                z3.Or(z3.And(a.true, b.false), z3.And(a.false, b.true)),
                z3.Or(z3.And(a.true, b.true), z3.And(a.false, b.false))
            )
        if isinstance(node, exp.Not):
            return _not(self.truth(node.this))
        if isinstance(node, exp.Boolean):
            return _Truth(_YES, _NO) if node.this else _Truth(_NO, _YES)
        if isinstance(node, exp.Null):
            return _Truth(_NO, _NO)
        try:
            return self._predicate(node)
        except _Unclear:
            return self._named_truth(node)

    def _predicate(self, node: exp.Expression) -> _Truth:
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            a, b = self._pair(node.left, node.right)
            same = z3.Or(z3.And(a.null, b.null), z3.And(z3.Not(a.null), z3.Not(b.null), a.term == b.term))
            return _Truth(same, z3.Not(same)) if isinstance(node, exp.NullSafeEQ) else _Truth(z3.Not(same), same)
        if isinstance(node, exp.Between):
            low = self._compare(exp.GTE, node.this, node.args["low"])
            high = self._compare(exp.LTE, node.this, node.args["high"])
            return _Truth(z3.And(low.true, high.true), z3.Or(low.false, high.false))
        if isinstance(node, exp.In) and _selects_all_of(node.args.get("query"), node.this):
            return self._unless_null(node.this)
        if isinstance(node, exp.EQ) and isinstance(node.right, exp.Any) and _selects_all_of(node.right.this, node.left):
            return self._unless_null(node.left)
        if isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.SimilarTo) and _matches_all(node):
            return self._unless_null(node.this)
        if isinstance(node, exp.In) and node.expressions:
            return _or([self._compare(exp.EQ, node.this, e) for e in node.expressions])
        if isinstance(node, exp.Like | exp.ILike | exp.Glob):
            return self._like(node)
        if type(node) in _COMPARE:
            return self._compare(type(node), node.left, node.right)
        if isinstance(node, exp.Exists) and isinstance(node.this, exp.Select) and not _from(node.this):
            return _Truth(_YES, _NO)  # a SELECT without FROM has a row
        if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Column):
            value = self.value(node)
            if value.sort == "bool":
                return _Truth(z3.And(z3.Not(value.null), value.term), z3.And(z3.Not(value.null), z3.Not(value.term)))
        if isinstance(
            node, exp.Literal | exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Case | exp.If | exp.Coalesce | exp.Nullif):
            value = self.value(node)
            if value.sort == "number":
                return _known(value.null, value.term != 0)
        raise _Unclear(node.sql())

    def _is(self, node: exp.Is) -> _Truth:
        other = node.expression
        if isinstance(other, exp.Null):
            null = self._null_of(node.this)
            self.tested += [n for n in self.nulls if any(n.eq(v) for v in z3.z3util.get_vars(null))]
            return _Truth(null, z3.Not(null))
        if isinstance(other, exp.Boolean):
            truth = self.truth(node.this)
            held = truth.true if other.this else truth.false
            return _Truth(held, z3.Not(held))
        a, b = self._pair(node.this, other)  # IS of SQLite compares
        same = z3.Or(z3.And(a.null, b.null), z3.And(z3.Not(a.null), z3.Not(b.null), a.term == b.term))
        return _Truth(same, z3.Not(same))

    def _null_of(self, node: exp.Expression) -> Any:
        node = node.unnest()
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not) and not isinstance(node, exp.Column):
            truth = self.truth(node)
            return z3.Not(z3.Or(truth.true, truth.false))
        try:
            return self.value(node).null
        except _Unclear:
            return self._null(node)

    def _unless_null(self, node: exp.Expression) -> _Truth:
        return _known(self._null_of(node), _YES)

    def _compare(self, kind: type[exp.Expression], left: exp.Expression, right: exp.Expression) -> _Truth:
        left, right = left.unnest(), right.unnest()
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and kind in (exp.EQ, exp.NEQ):
            if len(left.expressions) != len(right.expressions) or not left.expressions:
                raise _Unclear("rows of different widths")
            pairs = [self._compare(exp.EQ, a, b) for a, b in zip(left.expressions, right.expressions, strict=True)]
            same = _Truth(z3.And([p.true for p in pairs]), z3.Or([p.false for p in pairs]))
            return same if kind is exp.EQ else _not(same)
        a, b = self._pair(left, right)
        if a.sort == "bool" and kind not in (exp.EQ, exp.NEQ):
            a, b = (_Value("number", z3.If(v.term, z3.RealVal(1), z3.RealVal(0)), v.null) for v in (a, b))
        return _known(z3.Or(a.null, b.null), _COMPARE[kind](a.term, b.term))

    def _pair(self, left: exp.Expression, right: exp.Expression) -> tuple[_Value, _Value]:
        """The values of two sides, of one sort."""
        wanted = self.sort(left) or self.sort(right)
        a, b = self.value(left, wanted), self.value(right, wanted or self.sort(left))
        if a.sort != b.sort:
            a, b = self.value(left, b.sort), self.value(right, a.sort)
        if a.sort != b.sort and {a.sort, b.sort} == {"bool", "number"}:
            a, b = (v if v.sort == "number" else _Value("number", z3.If(v.term, z3.RealVal(1), z3.RealVal(0)), v.null)
                for v in (a, b))
        if a.sort != b.sort:
            raise _Unclear("values of different types")
        return a, b

    def _like(self, node: exp.Expression) -> _Truth:
        pattern, subject = node.expression.unnest(), node.this.unnest()
        if subject == pattern:
            return self._unless_null(subject)
        text = _text_of(pattern)
        if text is None or len(text) > _MAX_TEXT or "\\" in text:
            raise _Unclear(node.sql())
        is_glob = isinstance(node, exp.Glob)
        if is_glob and "[" in text:
            raise _Unclear(node.sql())
        many, one = ("*", "?") if is_glob else ("%", "_")
        if text and set(text) == {many}:
            return self._unless_null(subject)
        if (constant := _text_of(subject)) is not None and not subject.find(exp.Column):
            shape = "".join(".*" if c == many else "." if c == one else re.escape(c) for c in text)
            matches = bool(re.fullmatch(shape, constant[:1_000], re.S | (re.I if not is_glob else 0)))
            return _Truth(z3.BoolVal(matches), z3.BoolVal(not matches))
        if isinstance(node, exp.ILike):
            raise _Unclear(node.sql())
        value = self.value(subject, "text")
        if value.sort != "text":
            raise _Unclear(node.sql())
        any_character = z3.AllChar(z3.ReSort(z3.StringSort()))
        parts = [
            z3.Full(z3.ReSort(z3.StringSort())) if c == many else any_character if c == one else z3.Re(z3.StringVal(c))
            for c in text]
        shape = z3.Concat(*parts) if len(parts) > 1 else parts[0] if parts else z3.Re(z3.StringVal(""))
        return _known(value.null, z3.InRe(value.term, shape))

    def _null(self, node: exp.Expression) -> Any:
        null = z3.Bool("null " + _name(node))
        if not any(null.eq(n) for n in self.nulls):
            self.nulls.append(null)
        return null

    def _named_truth(self, node: exp.Expression) -> _Truth:
        if _varies(node):
            self._fresh += 1
        name = f"? {_name(node)}" + (f" {self._fresh}" if _varies(node) else "")
        return _known(self._null(node), z3.Bool(name))

    def _variable(self, node: exp.Expression, sort: str) -> _Value:
        name = ("" if isinstance(node, exp.Column) else "? ") + _name(node)
        if sort == "text":
            term: Any = z3.String("text " + name)
        elif sort == "bool":
            term = z3.Bool("bool " + name)
        else:
            term = self._numeric(node, name) if sort == "number" else z3.Real("order " + name)
        if isinstance(node, exp.Abs | exp.Count | exp.StrPosition | exp.Length):
            self.bounds.append(term >= 0)
        is_required = isinstance(node, exp.Column) and (self._type(node).endswith(REQUIRED) or node.name.lower() in _ROW_NAMES)
        if name == "rownum":
            self.bounds.append(term >= 1)
        null = _NO if isinstance(node, exp.Count) or is_required else self._null(node)
        return _Value(sort, term, null)

    def limits(self, node: exp.Expression) -> list[int | Decimal]:
        """The least and the greatest number of a column's type, or nothing."""
        sql = self._type(node).upper() if isinstance(node, exp.Column) else ""
        if bits := _INTEGERS.get(re.split(r"[\s(]", sql)[0]) if sql else None:
            return [0, 2**bits - 1] if "UNSIGNED" in sql else [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
        if decimal := re.match(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)", sql):
            greatest = Decimal((0, (9,) * int(decimal[1]), -int(decimal[2] or 0)))
            return [-greatest, greatest]
        return []

    def _numeric(self, node: exp.Expression, name: str) -> Any:
        limits = self.limits(node)
        term = z3.Int(name) if limits and isinstance(limits[0], int) else z3.Real(name)
        if limits:
            self.bounds += [term >= z3.RealVal(str(limits[0])), term <= z3.RealVal(str(limits[1]))]
        return term

    def value(self, node: exp.Expression, wanted: str = "") -> _Value:
        """The value of a node, of the wanted sort if it may be of several."""
        node = node.unnest()
        if isinstance(node, exp.Literal):
            return self._literal(node, wanted)
        if isinstance(node, exp.Null):
            return _null_value(wanted or "number")
        if isinstance(node, exp.Boolean):
            if wanted == "number":
                return _Value("number", z3.RealVal(int(bool(node.this))), _NO)
            return _Value("bool", z3.BoolVal(bool(node.this)), _NO)
        if isinstance(node, exp.Column | exp.Identifier):
            return self._variable(node, self.sort(node) or wanted or "number")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return self._variable(node, wanted or "number")
        if isinstance(node, exp.Cast):
            inner = self.value(node.this, _sort_of_type(node.to.sql()))
            return inner if inner.sort == _sort_of_type(node.to.sql()) else self._variable(
                node, _sort_of_type(node.to.sql()))
        if isinstance(node, exp.Select) and not _from(node) and len(node.expressions) == 1:
            return self.value(node.expressions[0].unalias(), wanted)
        folded = _text_of(node)
        if folded is not None and not isinstance(node, exp.Literal):
            return self._text(folded, wanted)
        if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Nullif):
            return self._chosen(node, wanted)
        if isinstance(node, exp.DPipe | exp.Concat):
            parts = [
                self.value(e, "text") for e in (node.flatten() if isinstance(node, exp.DPipe) else node.expressions)]
            if len(parts) < 2 or any(p.sort != "text" for p in parts):
                return self._variable(node, "text")
            return _Value("text", z3.Concat(*[p.term for p in parts]), z3.Or([p.null for p in parts]))
        if isinstance(node, exp.Length):
            inner = self.value(node.this, "text")
            if inner.sort == "text":
                return _Value("number", z3.Length(inner.term), inner.null)
        computed = self._text_function(node) or self._number_function(node) or self._arithmetic(node)
        if computed is not None:
            return computed
        if isinstance(node, exp.Collate):
            return self.value(node.this, wanted)
        if isinstance(node, exp.Greatest | exp.Least):
            return self._extreme(node, wanted)
        if isinstance(
            node, exp.Func | exp.Subquery | exp.Anonymous | exp.Binary | exp.Unary | exp.Bracket | exp.Interval):
            if _varies(node):
                raise _Unclear(node.sql())
            return self._variable(node, self.sort(node) or wanted or "number")
        raise _Unclear(node.sql())

    def _extreme(self, node: exp.Expression, wanted: str) -> _Value:
        """The value of GREATEST and LEAST, which ignore NULL as in PostgreSQL."""
        values = self._alike([node.this, *node.expressions], wanted)
        if values[0].sort not in ("number", "order"):
            return self._variable(node, values[0].sort)
        result = values[0]
        for v in values[1:]:
            first = result.term >= v.term if isinstance(node, exp.Greatest) else result.term <= v.term
            first = z3.Or(v.null, z3.And(z3.Not(result.null), first))
            result = _Value(v.sort, z3.If(first, result.term, v.term), z3.And(result.null, v.null))
        return result

    def _text_function(self, node: exp.Expression) -> _Value | None:
        """The value of POSITION, LEFT, RIGHT, and of REPLACE that changes nothing."""
        if isinstance(node, exp.StrPosition) and not any(
            node.args.get(k) for k in ("position", "occurrence")) and node.args.get("substr"):
            text, part = self.value(node.this, "text"), self.value(node.args["substr"], "text")
            if text.sort == part.sort == "text":
                return _Value("number", z3.IndexOf(text.term, part.term, 0) + 1, z3.Or(text.null, part.null))
        if isinstance(node, exp.Left | exp.Right):
            text, count = self.value(node.this, "text"), _whole(node.expression)
            if text.sort == "text" and count is not None:
                size = z3.Length(text.term)
                start: Any = z3.IntVal(0) if isinstance(node, exp.Left) else z3.If(size > count, size - count, 0)
                return _Value("text", z3.SubString(text.term, start, count), text.null)
        if isinstance(node, exp.Replace) and node.expression == node.args.get("replacement"):
            return self.value(node.this, "text")
        return None

    def _number_function(self, node: exp.Expression) -> _Value | None:
        """The value of a function of one number, by facts about it."""
        if isinstance(node, exp.IntDiv) and _whole(node.right) == 1:
            return self.value(node.left, "number")
        if not isinstance(node, exp.Sqrt | exp.Sign | exp.Floor | exp.Ceil | exp.Exp | exp.Sin | exp.Cos) or any(
            node.args.get(k) for k in ("decimals", "to")):
            return None
        inner = self.value(node.this, "number")
        if inner.sort != "number":
            return None
        x, result = inner.term, z3.Real("? " + _name(node))
        if isinstance(node, exp.Sign):
            result = z3.If(x > 0, z3.RealVal(1), z3.If(x < 0, z3.RealVal(-1), z3.RealVal(0)))
        elif isinstance(node, exp.Sqrt):
            self.bounds += [result >= 0, z3.Implies(x >= 0, result * result == x)]
        elif isinstance(node, exp.Exp):
            self.bounds += [result > 0, result >= 1 + x]
        elif isinstance(node, exp.Sin | exp.Cos):
            self.bounds += [result <= 1, result >= -1]
        else:  # FLOOR and CEIL
            result = z3.ToReal(z3.Int("? " + _name(node)))
            up = isinstance(node, exp.Ceil)
            self.bounds += [result >= x, result - 1 < x] if up else [result <= x, x < result + 1]
        return _Value("number", result, inner.null)

    def _arithmetic(self, node: exp.Expression) -> _Value | None:
        if isinstance(node, exp.Neg | exp.Abs):
            inner = self.value(node.this, "number")
            if inner.sort != "number":
                return None
            return _Value(
                "number", -inner.term if isinstance(node, exp.Neg) else z3.If(inner.term < 0, -inner.term, inner.term),
                inner.null)
        if isinstance(node, exp.Div) and node.left == node.right:
            return self._constant(1, node.left)
        if isinstance(node, exp.Mod) and node.right.unnest() in (exp.Literal.number(1), exp.Literal.number(-1)):
            return self._constant(0, node.left)
        if isinstance(node, exp.BitwiseAnd) and exp.Literal.number(0) in (node.left, node.right):
            return self._constant(0, node.left)
        if isinstance(node, exp.BitwiseXor) and node.left == node.right:
            return self._constant(0, node.left)
        if isinstance(node, exp.Pow):
            base, power = self.value(node.this, "number"), _number(node.expression.name) if isinstance(
                node.expression, exp.Literal) else None
            if base.sort == "number" and power is not None and power == int(power) and 0 <= power <= _MAX_POWER:
                term: Any = z3.RealVal(1)
                for _ in range(int(power)):
                    term = term * base.term
                return _Value("number", term, base.null)
            return None
        operate = _OPERATE.get(type(node))
        if operate is not None:
            a, b = self.value(node.left, "number"), self.value(node.right, "number")
            if a.sort == b.sort == "number":
                return _Value("number", operate(a.term, b.term), z3.Or(a.null, b.null))
        return None

    def _constant(self, number: int, unless_null: exp.Expression) -> _Value:
        return _Value("number", z3.RealVal(number), self._null_of(unless_null))

    def _chosen(self, node: exp.Expression, wanted: str) -> _Value:
        """The value of CASE, IF, COALESCE and NULLIF."""
        if isinstance(node, exp.Coalesce):
            values = self._alike([node.this, *node.expressions], wanted)
            result = values[-1]
            for v in reversed(values[:-1]):
                result = _Value(v.sort, z3.If(v.null, result.term, v.term), z3.And(v.null, result.null))
            return result
        if isinstance(node, exp.Nullif):
            a, b = self._pair(node.this, node.expression)
            return _Value(a.sort, a.term, z3.Or(a.null, z3.And(z3.Not(b.null), a.term == b.term)))
        branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
        default = node.args.get("false") if isinstance(node, exp.If) else node.args.get("default")
        subject = node.this if isinstance(node, exp.Case) else None
        values = self._alike([*(b.args["true"] for b in branches), default or exp.Null()], wanted)
        result = values[-1]
        for branch, v in zip(reversed(branches), reversed(values[:-1]), strict=True):
            held = (self._compare(exp.EQ, subject, branch.this) if subject is not None
                else self.truth(branch.this)).true
            result = _Value(v.sort, z3.If(held, v.term, result.term), z3.If(held, v.null, result.null))
        return result

    def _alike(self, nodes: list[exp.Expression], wanted: str) -> list[_Value]:
        """The values of nodes, of one sort."""
        sort = wanted or next((s for n in nodes if (s := self.sort(n))), "number")
        values = [_null_value(sort) if isinstance(n.unnest(), exp.Null) else self.value(n, sort) for n in nodes]
        if any(v.sort != values[0].sort for v in values):
            raise _Unclear("values of different types")
        return values

    def _literal(self, node: exp.Literal, wanted: str) -> _Value:
        number = _number(node.this)
        if number is not None and wanted != "text" and not (wanted == "order" and node.is_string):
            if wanted == "bool" and number in (0, 1):
                return _Value("bool", z3.BoolVal(number == 1), _NO)
            return _Value("number", z3.RealVal(format(number, "f")), _NO)
        return self._text(node.this, wanted)

    def _text(self, text: str, wanted: str) -> _Value:
        if wanted == "bool" and text.lower() in ("t", "f", "true", "false"):
            return _Value("bool", z3.BoolVal(text.lower()[0] == "t"), _NO)
        if wanted in ("number", "bool") and (number := _number(text)) is not None:
            return _Value("number", z3.RealVal(format(number, "f")), _NO)
        if wanted == "order":
            return _Value("order", self._ordered(text), _NO)
        if len(text) > _MAX_TEXT:
            raise _Unclear("a long text")
        return _Value("text", z3.StringVal(text), _NO)

    def _ordered(self, text: str) -> Any:
        """Each text is a number, in their order."""
        if text not in self._texts:
            code = 0
            for i in range(12):
                code = code * 0x110000 + (ord(text[i]) if i < len(text) else 0)
            more = z3.RealVal(f"{len(self._texts) + 1}/1000000") if len(text) > 12 else z3.RealVal(0)
            self._texts[text] = z3.RealVal(code + 10**6) + more
        return self._texts[text]


def _name(node: exp.Expression) -> str:
    return node.sql().lower()


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= 300 else None


def _whole(node: exp.Expression | None) -> int | None:
    """The whole number from 0 to _MAX_TEXT that a node is, or None."""
    text = node.name if isinstance(node, exp.Literal) else ""
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_TEXT else None


def _varies(node: exp.Expression) -> bool:
    """Whether a node may have another value each time."""
    return bool(node.find(exp.Rand, exp.Uuid)) or any(
        str(n.this).lower() in ("random", "newid") for n in node.find_all(exp.Anonymous))


def _null_value(sort: str) -> _Value:
    term = {"text": z3.StringVal(""), "bool": _NO}.get(sort, z3.RealVal(0))
    return _Value(sort, term, _YES)


def _known(null: Any, term: Any) -> _Truth:
    return _Truth(z3.And(z3.Not(null), term), z3.And(z3.Not(null), z3.Not(term)))


def _not(truth: _Truth) -> _Truth:
    return _Truth(truth.false, truth.true)


def _or(parts: list[_Truth]) -> _Truth:
    return _Truth(z3.Or([p.true for p in parts]), z3.And([p.false for p in parts]))


def _from(query: exp.Select) -> Any:
    return query.args.get("from_") or query.args.get("from")


def _selects_all_of(query: exp.Expression | None, column: exp.Expression) -> bool:
    """Whether a subquery without conditions reads the very column from a table of the statement itself."""
    query = query.unnest() if isinstance(query, exp.Subquery) else query
    outer = column.parent_select
    if not (isinstance(query, exp.Select) and isinstance(column, exp.Column) and outer) or any(
        query.args.get(k) for k in ("where", "limit", "having", "joins")
    ):
        return False
    inside = {t.name.lower() for t in query.find_all(exp.Table)}
    around = {t.name.lower() for t in outer.find_all(exp.Table)}
    selected = query.expressions[0] if len(query.expressions) == 1 else None
    return isinstance(selected, exp.Column) and selected.name.lower() == column.name.lower() and bool(inside & around)


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


def _text_of(node: exp.Expression | None) -> str | None:
    """The text that a node of literals makes."""
    if isinstance(node, exp.Literal):
        return node.this
    if isinstance(node, exp.Paren):
        return _text_of(node.this)
    if isinstance(node, exp.DPipe):
        left, right = _text_of(node.left), _text_of(node.right)
        return left + right if left is not None and right is not None else None
    if isinstance(node, exp.Concat):
        parts = [_text_of(e) for e in node.expressions]
        return "".join(p for p in parts if p is not None) if all(p is not None for p in parts) else None
    if isinstance(node, exp.Upper | exp.Lower):
        inner = _text_of(node.this)
        return inner if inner is None else inner.upper() if isinstance(node, exp.Upper) else inner.lower()
    if isinstance(node, exp.Chr):
        codes = [
            e.this for e in node.expressions if isinstance(e, exp.Literal) and not e.is_string and e.this.isdigit()]
        return "".join(chr(int(c) % 0x110000) for c in codes) if len(codes) == len(node.expressions) else None
    if isinstance(node, exp.HexString):
        return str(node.this)
    return None


_COMPARE: dict[type[exp.Expression], Any] = {
    exp.EQ: lambda a, b: a == b, exp.NEQ: lambda a, b: a != b, exp.GT: lambda a, b: a > b, exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b, exp.LTE: lambda a, b: a <= b,
}  # fmt: skip
_OPERATE: dict[type[exp.Expression], Any] = {
    exp.Add: lambda a, b: a + b, exp.Sub: lambda a, b: a - b, exp.Mul: lambda a, b: a * b}
