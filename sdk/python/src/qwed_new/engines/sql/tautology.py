"""Conditions that are always true: decided by Z3, with columns as variables that have a value."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import z3
from sqlglot import exp

MILLISECONDS = 2_000


class _Unclear(ValueError):
    """A part that is not translated."""


def tautologies(statement: exp.Expression) -> list[str]:
    """The conditions, or operands of OR, that hold for every row; as SQL."""
    found: list[str] = []
    for node in statement.find_all(exp.Where, exp.Having, exp.Join, exp.Qualify, exp.If):
        condition = node.args.get("on") if isinstance(node, exp.Join) else node.this
        if not isinstance(condition, exp.Expression) or isinstance(node, exp.If):
            continue
        for part in _candidates(condition):
            if part.sql() not in found and (always_true(part) or (part is not condition and _is_constant(part))):
                found.append(part.sql())
        if _is_constant(condition) and not condition.find(exp.Subquery, exp.Exists) and not _always(condition, False):
            found.append(condition.sql())
    return list(dict.fromkeys(found))


def _is_constant(condition: exp.Expression) -> bool:
    """Whether an operand of OR names no column and no parameter, so that it is the same for every row, whatever it computes."""
    open_parts = (exp.Column, exp.AggFunc, exp.Placeholder, exp.Parameter, exp.SessionParameter)
    own = [n for n in condition.find_all(*open_parts, exp.Where) if not _in_unfiltered_query(n, condition)]
    return not own and not isinstance(condition, exp.Boolean | exp.Or | exp.Xor | exp.And)


def _in_unfiltered_query(node: exp.Expression, within: exp.Expression) -> bool:
    """Whether a node stands in a subquery without WHERE, which says the same for every row."""
    query = node.find_ancestor(exp.Select)
    return query is not None and query is not within.parent_select and not query.args.get("where")


def _candidates(condition: exp.Expression) -> list[exp.Expression]:
    out = [condition]
    for node in condition.find_all(exp.Or, exp.Xor):
        out += [node, node.left, node.right]
    out += [n.this for n in condition.find_all(exp.Not) if isinstance(n.this, exp.Paren)]
    return [o for o in out if (isinstance(o, exp.Expression) and not isinstance(o, exp.Not)) or o is condition]


def always_true(condition: exp.Expression) -> bool:
    """Whether a condition is true whatever values the columns have."""
    return _always(condition, True)


def _always(condition: exp.Expression, value: bool) -> bool:
    translator = _Translator()
    try:
        term = translator.truth(condition)
    except (_Unclear, z3.Z3Exception, RecursionError):
        return False
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*translator.bounds, z3.Not(term) if value else term)
    return solver.check() == z3.unsat


class _Translator:
    """Conditions to terms over the real numbers; what is not translated is a variable named by its SQL."""

    def __init__(self) -> None:
        self._texts: dict[str, Any] = {}
        self.bounds: list[Any] = []  # what is known of functions, such as that no length is negative

    def truth(self, node: exp.Expression) -> Any:
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", False)
            return z3.Not(self.truth(plain))
        if isinstance(node, exp.Paren):
            return self.truth(node.this)
        if isinstance(node, exp.And):
            return z3.And(self.truth(node.left), self.truth(node.right))
        if isinstance(node, exp.Or):
            return z3.Or(self.truth(node.left), self.truth(node.right))
        if isinstance(node, exp.Xor):
            return z3.Xor(self.truth(node.left), self.truth(node.right))
        if isinstance(node, exp.Not):
            return z3.Not(self.truth(node.this))
        if isinstance(node, exp.Boolean):
            return z3.BoolVal(bool(node.this))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return z3.BoolVal(isinstance(node.this, exp.Null)) if isinstance(node.this, exp.Null | exp.Literal) else self._named(node)
        if isinstance(node, exp.Between):
            value = self.value(node.this)
            return z3.And(value >= self.value(node.args["low"]), value <= self.value(node.args["high"]))
        if isinstance(node, exp.In) and _selects_all_of(node.args.get("query"), node.this):
            return z3.BoolVal(True)
        if isinstance(node, exp.EQ) and isinstance(node.right, exp.Any) and _selects_all_of(node.right.this, node.left):
            return z3.BoolVal(True)
        if isinstance(node, exp.RegexpLike | exp.RegexpILike | exp.SimilarTo) and _matches_all(node):
            return z3.BoolVal(True)
        if isinstance(node, exp.In) and node.expressions:
            value = self.value(node.this)
            return z3.Or([value == self.value(e) for e in node.expressions])
        if isinstance(node, exp.Like | exp.ILike):
            return self._like(node)
        compare = _COMPARE.get(type(node))
        if compare is not None:
            return compare(self.value(node.left), self.value(node.right))
        if isinstance(node, exp.Exists):
            return self._exists(node)
        if isinstance(node, exp.Literal | exp.Neg | exp.Add | exp.Sub | exp.Mul):
            return self.value(node) != 0
        return self._named(node)

    def _exists(self, node: exp.Exists) -> Any:
        inner = node.this
        if isinstance(inner, exp.Select) and not inner.args.get("from") and not inner.args.get("from_"):
            return z3.BoolVal(True)  # a SELECT without FROM has a row
        return self._named(node)

    def _like(self, node: exp.Like | exp.ILike) -> Any:
        pattern = node.expression
        if isinstance(pattern, exp.Literal) and pattern.is_string:
            if re.fullmatch(r"%+", pattern.this):
                return z3.BoolVal(True)
            if isinstance(node.this, exp.Literal):
                shape = "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern.this[:200])
                return z3.BoolVal(bool(re.fullmatch(shape, node.this.this[:1_000], re.I | re.S)))
        if node.this == pattern:
            return z3.BoolVal(True)
        return self._named(node)

    def _named(self, node: exp.Expression) -> Any:
        return z3.Bool("? " + node.sql().lower())

    def value(self, node: exp.Expression) -> Any:
        if isinstance(node, exp.Paren | exp.Cast | exp.TryCast):
            return self.value(node.this)
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.Neg):
            return -self.value(node.this)
        if isinstance(node, exp.Boolean):
            return z3.RealVal(int(bool(node.this)))
        if isinstance(node, exp.Div) and node.left == node.right:
            return z3.RealVal(1)
        if isinstance(node, exp.Mod) and node.right in (exp.Literal.number(1), exp.Literal.number(-1)):
            return z3.RealVal(0)
        if isinstance(node, exp.BitwiseAnd) and exp.Literal.number(0) in (node.left, node.right):
            return z3.RealVal(0)
        operate = _OPERATE.get(type(node))
        if operate is not None:
            return operate(self.value(node.left), self.value(node.right))
        folded = _text_of(node)
        if folded is not None:
            return self._text(folded)
        if isinstance(node, exp.Length) and (text := _text_of(node.this)) is not None:
            return z3.RealVal(len(text))
        if (
            isinstance(node, exp.Subquery)
            and isinstance(inner := node.this, exp.Select)
            and not inner.args.get("from_")
            and not inner.args.get("from")
        ):
            if len(inner.expressions) == 1:
                return self.value(inner.expressions[0].unalias())
        if isinstance(node, exp.Column | exp.Identifier):
            return z3.Real(node.sql().lower())
        if isinstance(node, exp.Func | exp.Subquery | exp.Case | exp.Anonymous | exp.Placeholder | exp.Parameter | exp.Null):
            if node.find(exp.Rand) or isinstance(node, exp.Null | exp.Placeholder | exp.Parameter):
                raise _Unclear(node.sql())
            value = z3.Real("? " + node.sql().lower())
            if isinstance(node, exp.Length | exp.Abs | exp.Count | exp.StrPosition):
                self.bounds.append(value >= 0)
            return value
        raise _Unclear(node.sql())

    def _literal(self, node: exp.Literal) -> Any:
        try:
            number = Decimal(node.this.strip() if node.is_string else node.this)
        except InvalidOperation:
            return self._text(node.this)
        if not number.is_finite() or abs(number.adjusted()) > 300:
            return self._text(node.this)
        return z3.RealVal(format(number, "f"))

    def _text(self, text: str) -> Any:
        """Each text is a number of its own, in their order."""
        if text not in self._texts:
            code = 0
            for i in range(12):
                code = code * 0x110000 + (ord(text[i]) if i < len(text) else 0)
            self._texts[text] = (
                z3.RealVal(code + 10**6) if len(text) <= 12 else z3.RealVal(code + 10**6) + z3.RealVal(f"{len(self._texts) + 1}/1000000")
            )
        return self._texts[text]


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
    """Whether a constant pattern matches every text, as far as samples of every kind tell."""
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
        codes = [e.this for e in node.expressions if isinstance(e, exp.Literal) and not e.is_string and e.this.isdigit()]
        return "".join(chr(int(c) % 0x110000) for c in codes) if len(codes) == len(node.expressions) else None
    if isinstance(node, exp.HexString):
        return str(node.this)
    return None


_COMPARE = {
    exp.EQ: lambda a, b: a == b, exp.NEQ: lambda a, b: a != b, exp.GT: lambda a, b: a > b, exp.GTE: lambda a, b: a >= b,
    exp.LT: lambda a, b: a < b, exp.LTE: lambda a, b: a <= b, exp.NullSafeEQ: lambda a, b: a == b, exp.Is: lambda a, b: a == b,
}  # fmt: skip
_OPERATE = {exp.Add: lambda a, b: a + b, exp.Sub: lambda a, b: a - b, exp.Mul: lambda a, b: a * b}
