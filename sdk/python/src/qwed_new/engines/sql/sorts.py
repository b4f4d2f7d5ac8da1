"""The sorts of SQL expressions, their terms in Z3, and what a constant expression is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import z3
from sqlglot import exp

MAX_TEXT = 200  # characters of a string constant

Types = Mapping[str, str]  # columns in lower case with the SQL of their types, and REQUIRED if they are never NULL
REQUIRED = " NOT NULL"
ROW = "ROW"  # the type of a name that means all columns of a table, as in PostgreSQL

YES, NO = z3.BoolVal(True), z3.BoolVal(False)

_INTEGERS = {
    "TINYINT": 8, "SMALLINT": 16, "INT2": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 32, "INT4": 32, "SERIAL": 32,
    "BIGINT": 64, "INT8": 64, "BIGSERIAL": 64,
}  # fmt: skip
ROW_NAMES = frozenset({"rownum", "rowid"})  # of Oracle and SQLite: each row has one
_NUMBERS = frozenset("DECIMAL NUMERIC NUMBER REAL FLOAT DOUBLE MONEY FLOAT4 FLOAT8 DEC".split())
_TEXTS = frozenset(
    "TEXT VARCHAR CHAR CHARACTER NVARCHAR VARCHAR2 NVARCHAR2 NCHAR CLOB CITEXT STRING BPCHAR BINARY VARBINARY".split())


class Unclear(ValueError):
    """A part that is not translated."""


class Truth(NamedTuple):
    """A condition; NULL if it is neither true nor false."""

    true: Any
    false: Any


class Value(NamedTuple):
    sort: str  # number, text, bool, or order for types that are only compared, such as dates
    term: Any
    null: Any


def sort_of_type(sql: str) -> str:
    base = re.split(r"[\s(]", sql.strip().upper())[0]
    if base in _INTEGERS or base in _NUMBERS:
        return "number"
    if base in _TEXTS or base == ROW:
        return "text"
    return "bool" if base in ("BOOL", "BOOLEAN") else "order"


def name_of(node: exp.Expression) -> str:
    return node.sql().lower()


def common_type(a: str, b: str) -> str:
    """Return the type of two columns of one name, "unknown" if they have two."""
    if a == b:
        return a
    a, b = a.removesuffix(REQUIRED), b.removesuffix(REQUIRED)
    return a if a == b else "unknown"


def number_of(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= 300 else None


def whole_of(node: exp.Expression | None) -> int | None:
    """The whole number from 0 to MAX_TEXT that a node is, or None."""
    text = node.name if isinstance(node, exp.Literal) else ""
    return int(text) if text.isascii() and text.isdigit() and int(text) <= MAX_TEXT else None


def varies(node: exp.Expression) -> bool:
    """Whether a node may have another value each time."""
    return bool(node.find(exp.Rand, exp.Uuid)) or any(
        str(n.this).lower() in ("random", "newid") for n in node.find_all(exp.Anonymous))


def null_value(sort: str) -> Value:
    term = {"text": z3.StringVal(""), "bool": NO}.get(sort, z3.RealVal(0))
    return Value(sort, term, YES)


def known(null: Any, term: Any) -> Truth:
    return Truth(z3.And(z3.Not(null), term), z3.And(z3.Not(null), z3.Not(term)))


def negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true)


def any_of(parts: list[Truth]) -> Truth:
    return Truth(z3.Or([p.true for p in parts]), z3.And([p.false for p in parts]))


def source_of(query: exp.Select) -> Any:
    return query.args.get("from_") or query.args.get("from")


def text_of(node: exp.Expression | None) -> str | None:
    """The text that a node of literals makes."""
    if isinstance(node, exp.Literal):
        return node.this
    if isinstance(node, exp.Paren):
        return text_of(node.this)
    if isinstance(node, exp.DPipe):
        left, right = text_of(node.left), text_of(node.right)
        return left + right if left is not None and right is not None else None
    if isinstance(node, exp.Concat):
        parts = [text_of(e) for e in node.expressions]
        return "".join(p for p in parts if p is not None) if all(p is not None for p in parts) else None
    if isinstance(node, exp.Upper | exp.Lower):
        inner = text_of(node.this)
        return inner if inner is None else inner.upper() if isinstance(node, exp.Upper) else inner.lower()
    if isinstance(node, exp.Chr):
        codes = [
            e.this for e in node.expressions if isinstance(e, exp.Literal) and not e.is_string and e.this.isdigit()]
        return "".join(chr(int(c) % 0x110000) for c in codes) if len(codes) == len(node.expressions) else None
    if isinstance(node, exp.HexString):
        return str(node.this)
    return None


def is_free(node: exp.Expression) -> bool:
    """Report whether a node may have any value for each row: it is computed from other rows, from the clock or
    from parameters, or is a search for words."""
    if isinstance(node, exp.In):
        return bool(node.args.get("query")) and bool(node.args["query"].find(exp.Table))
    if isinstance(node, exp.MatchAgainst):
        return not {c.sql() for c in node.this.find_all(exp.Column)} & {
            c.sql() for e in node.expressions for c in e.find_all(exp.Column)}
    if isinstance(node, exp.Func | exp.Add | exp.Sub | exp.Cast) and not isinstance(node, exp.Connector | exp.Any):
        if not node.find(exp.Column) and (of_clock(node) or node.find(exp.Placeholder, exp.Parameter)):
            return True
    return isinstance(node, exp.AggFunc | exp.Window) or (
        isinstance(node, exp.Exists | exp.Subquery) and bool(node.find(exp.Table)))


_CLOCK = (
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime, exp.Localtime, exp.Localtimestamp)
_CLOCKS = frozenset(
    "now getdate getutcdate sysdate sysdatetime curdate curtime systimestamp utc_timestamp utc_date".split())


def of_clock(node: exp.Expression) -> bool:
    """Report whether a node is computed from the time of the query and not from a row."""
    return not node.find(exp.Column) and (bool(node.find(*_CLOCK)) or any(
        str(n.this).lower() in _CLOCKS for n in node.find_all(exp.Anonymous)))


_ORDERED = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
_COMPUTED = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Abs, exp.Sqrt, exp.Floor, exp.Ceil, exp.Exp,
    exp.Sin, exp.Cos, exp.Sign, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift,
    exp.BitwiseRightShift)  # fmt: skip


_OF_NUMBERS = frozenset(
    "degrees radians tan cot asin acos atan atan2 sinh cosh tanh round trunc truncate ln log log2 log10 cbrt mod gcd "
    "lcm factorial bit_count power".split())


def _is_of_numbers(node: exp.Expression) -> bool:
    """Report whether a node computes with numbers."""
    name = str(node.this) if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else ""
    return isinstance(node, _COMPUTED) or name.lower() in _OF_NUMBERS


def _kind(sort: str) -> str:
    return "number" if sort == "bool" else sort


def _has_date(node: exp.Expression) -> bool:
    """Report whether each text that a node has as an operand begins like a date or a time."""
    texts = [o.this for o in node.iter_expressions() if isinstance(o, exp.Literal) and o.is_string]
    return bool(texts) and all(re.match(r"\d{4}|\d\d:\d\d|[-+]?infinity$|now$|today$|epoch$", t) for t in texts)


class Sorts:
    """The sorts of the expressions of a condition. A column whose type is not known has the sort of what it is compared
    with."""

    def __init__(self, condition: exp.Expression, types: Types) -> None:
        self._types = types
        self._sorts: dict[str, str] = {}
        for _ in range(2):
            self._infer(condition)

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
            self._sorts.setdefault(name_of(node), sort)

    def is_required(self, node: exp.Expression) -> bool:
        """Report whether a node is a column that is never NULL."""
        return isinstance(node, exp.Column) and (
            self._type(node).endswith(REQUIRED) or node.name.lower() in ROW_NAMES)

    def _type(self, column: exp.Column) -> str:
        return self._types.get(column.sql().lower()) or self._types.get(column.name.lower()) or ""

    def mixes(self, condition: exp.Expression) -> bool:
        """Report whether a condition relies on a conversion that databases do in different ways, or refuse: a number
        compared with a text that is not one, arithmetic with texts or dates, a computed number instead of a truth."""
        for node in condition.walk():
            kinds = {_kind(self.sort(o)) for o in node.iter_expressions()} - {""}
            if isinstance(node, _ORDERED | exp.Between | exp.In | exp.NullSafeEQ | exp.NullSafeNEQ):
                if len(kinds) > 1 and (kinds != {"text", "order"} or not _has_date(node)):
                    return True
            elif kinds & {"text", "order"} and _is_of_numbers(node) and self.sort(node) != "order":
                if not (isinstance(node, exp.Sub) and of_clock(node.left) != of_clock(node.right)):
                    return True  # and not the time since a date
        tops = [condition, *(o for n in condition.find_all(exp.Connector, exp.Not) for o in n.iter_expressions())]
        return any(
            isinstance(t.unnest(), (*_COMPUTED, exp.DPipe, exp.BitwiseNot, exp.Neg)) and not isinstance(
                t.unnest(), exp.BitwiseAnd) for t in tops)

    def is_row(self, node: exp.Expression) -> bool:
        """Report whether a node is the name of a table that is used as a row."""
        return isinstance(node, exp.Column) and self._type(node).startswith(f"{ROW} ")

    def sort(self, node: exp.Expression) -> str:
        """The sort of a node, or "" if it is not known."""
        node = node.unnest()
        if isinstance(node, exp.Column):
            if (sql := self._type(node)) and sql.upper() != "UNKNOWN":
                return sort_of_type(sql)
            return self._sorts.get(name_of(node), "")
        if isinstance(node, exp.Literal):
            return "text" if node.is_string and number_of(node.this) is None else "" if node.is_string else "number"
        if isinstance(node, exp.Boolean):
            return "bool"
        if isinstance(node, exp.Cast):
            return sort_of_type(node.to.sql())
        if isinstance(
            node, exp.DPipe | exp.Concat | exp.Upper | exp.Lower | exp.Substring | exp.Trim | exp.Chr | exp.Replace
            | exp.Left | exp.Right | exp.Collate):
            return "text"
        if (isinstance(node, exp.Add | exp.Sub) and isinstance(node.right, exp.Interval)) or of_clock(node):
            return "order"
        if isinstance(
            node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Pow | exp.Abs | exp.Length | exp.Count
            | exp.Neg | exp.Sum | exp.StrPosition | exp.IntDiv | exp.Sqrt | exp.Sign | exp.Floor | exp.Ceil | exp.Exp
            | exp.Sin | exp.Cos | exp.BitwiseAnd | exp.BitwiseOr | exp.BitwiseXor | exp.BitwiseNot
            | exp.BitwiseLeftShift | exp.BitwiseRightShift):
            return "number"
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not) and not isinstance(node, exp.Any | exp.All):
            return "bool"
        return ""

    def is_day(self, node: exp.Expression) -> bool:
        """Report whether a node is a column of dates without a time."""
        return isinstance(node, exp.Column) and re.split(r"[\s(]", self._type(node).upper())[0] == "DATE"

    def limits(self, node: exp.Expression) -> list[int | Decimal]:
        """The least and the greatest number of a column's type, or nothing."""
        sql = self._type(node).upper() if isinstance(node, exp.Column) else ""
        if bits := _INTEGERS.get(re.split(r"[\s(]", sql)[0]) if sql else None:
            return [0, 2**bits - 1] if "UNSIGNED" in sql else [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
        if decimal := re.match(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)", sql):
            greatest = Decimal((0, (9,) * int(decimal[1]), -int(decimal[2] or 0)))
            return [-greatest, greatest]
        return []

    def size(self, node: exp.Expression) -> int | None:
        """The number of characters that a column's type allows, or None."""
        sql = self._type(node).upper() if isinstance(node, exp.Column) else ""
        found = re.match(r"(?:N?VARCHAR2?|N?CHAR|CHARACTER)\s*\(\s*(\d{1,6})\s*\)", sql)
        return int(found[1]) if found else None
