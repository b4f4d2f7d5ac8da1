"""The sorts of SQL expressions, the terms that stand for them in Z3, and what a constant expression is."""

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

YES, NO = z3.BoolVal(True), z3.BoolVal(False)

_INTEGERS = {
    "TINYINT": 8, "SMALLINT": 16, "INT2": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 32, "INT4": 32, "SERIAL": 32,
    "BIGINT": 64, "INT8": 64, "BIGSERIAL": 64,
}  # fmt: skip
ROW_NAMES = frozenset({"rownum", "rowid"})  # of Oracle and SQLite: each row has one
_NUMBERS = frozenset("DECIMAL NUMERIC NUMBER REAL FLOAT DOUBLE MONEY FLOAT4 FLOAT8 DEC".split())
_TEXTS = frozenset("TEXT VARCHAR CHAR CHARACTER NVARCHAR VARCHAR2 NVARCHAR2 NCHAR CLOB CITEXT STRING BPCHAR".split())


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
    if base in _TEXTS:
        return "text"
    return "bool" if base in ("BOOL", "BOOLEAN") else "order"


def name_of(node: exp.Expression) -> str:
    return node.sql().lower()


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

    def _type(self, column: exp.Column) -> str:
        return self._types.get(column.sql().lower()) or self._types.get(column.name.lower()) or ""

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
            node, exp.DPipe | exp.Concat | exp.Upper | exp.Lower | exp.Substring | exp.Trim | exp.Chr | exp.Replace | exp.Left
            | exp.Right | exp.Collate):
            return "text"
        if isinstance(
            node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.Pow | exp.Abs | exp.Length | exp.Count
            | exp.Neg | exp.Sum | exp.StrPosition | exp.IntDiv | exp.Sqrt | exp.Sign | exp.Floor | exp.Ceil | exp.Exp
            | exp.Sin | exp.Cos):
            return "number"
        return ""

    def limits(self, node: exp.Expression) -> list[int | Decimal]:
        """The least and the greatest number of a column's type, or nothing."""
        sql = self._type(node).upper() if isinstance(node, exp.Column) else ""
        if bits := _INTEGERS.get(re.split(r"[\s(]", sql)[0]) if sql else None:
            return [0, 2**bits - 1] if "UNSIGNED" in sql else [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
        if decimal := re.match(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)", sql):
            greatest = Decimal((0, (9,) * int(decimal[1]), -int(decimal[2] or 0)))
            return [-greatest, greatest]
        return []
