"""The values of SQL expressions as terms of Z3.

An expression that is not translated becomes a variable named by its SQL."""

from __future__ import annotations

from typing import Any

import z3
from sqlglot import exp

from qwed_new.engines.sql.sorts import (
    MAX_TEXT,
    NO,
    Sorts,
    Truth,
    Types,
    Unclear,
    Value,
    is_free,
    name_of,
    null_value,
    number_of,
    sort_of_type,
    source_of,
    text_of,
    varies,
    whole_of,
)

_MAX_POWER = 6


class Values(Sorts):
    """Translate expressions to values. The conditions within them are translated by Truths."""

    def __init__(self, condition: exp.Expression, types: Types) -> None:
        self._texts: dict[str, Any] = {}
        self._fresh = 0
        self.bounds: list[Any] = []  # facts, such as that no length is negative
        self.nulls: list[Any] = []
        self.opaque: set[str] = set()  # the SQL of what became a variable and is computed from the row
        super().__init__(condition, types)

    def truth(self, node: exp.Expression) -> Truth:
        """Translate a condition."""
        raise NotImplementedError

    def compare(self, kind: type[exp.Expression], left: exp.Expression, right: exp.Expression) -> Truth:
        """Translate a comparison."""
        raise NotImplementedError

    def _null_of(self, node: exp.Expression) -> Any:
        node = node.unnest()
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not) and not isinstance(node, exp.Column):
            truth = self.truth(node)
            return z3.Not(z3.Or(truth.true, truth.false))
        try:
            return self.value(node).null
        except Unclear:
            return self._null(node)

    def _null(self, node: exp.Expression) -> Any:
        null = z3.Bool("null " + name_of(node))
        if not any(null.eq(n) for n in self.nulls):
            self.nulls.append(null)
        return null

    def _variable(self, node: exp.Expression, sort: str) -> Value:
        name = ("" if isinstance(node, exp.Column) else "? ") + name_of(node)
        if sort == "text":
            term: Any = z3.String("text " + name)
            if (size := self.size(node)) is not None:
                self.bounds.append(z3.Length(term) <= size)
        elif sort == "bool":
            term = z3.Bool("bool " + name)
        else:
            term = self._numeric(node, name) if sort == "number" else z3.Real("order " + name)
        if isinstance(node, exp.Abs | exp.Count | exp.StrPosition | exp.Length):
            self.bounds.append(term >= 0)
        if name == "rownum":
            self.bounds.append(term >= 1)
        if self.is_row(node):
            self.bounds += [z3.PrefixOf(z3.StringVal("("), term), z3.SuffixOf(z3.StringVal(")"), term)]
        if not isinstance(node, exp.Column | exp.Placeholder | exp.Parameter) and not is_free(node):
            self.opaque.add(node.sql())
        null = NO if isinstance(node, exp.Count) or self.is_required(node) else self._null(node)
        return Value(sort, term, null)

    def _numeric(self, node: exp.Expression, name: str) -> Any:
        limits = self.limits(node)
        term = z3.Int(name) if limits and isinstance(limits[0], int) else z3.Real(name)
        if limits:
            self.bounds += [term >= z3.RealVal(str(limits[0])), term <= z3.RealVal(str(limits[1]))]
        return term

    def value(self, node: exp.Expression, wanted: str = "") -> Value:
        """The value of a node, of the wanted sort if it may be of several."""
        node = node.unnest()
        if isinstance(node, exp.Literal):
            return self._literal(node, wanted)
        if isinstance(node, exp.Null):
            return null_value(wanted or "number")
        if isinstance(node, exp.Boolean):
            if wanted == "number":
                return Value("number", z3.RealVal(int(bool(node.this))), NO)
            return Value("bool", z3.BoolVal(bool(node.this)), NO)
        if isinstance(node, exp.Column | exp.Identifier):
            return self._variable(node, self.sort(node) or wanted or "number")
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return self._variable(node, wanted or "number")
        if isinstance(node, exp.Cast):
            inner = self.value(node.this, sort_of_type(node.to.sql()))
            return inner if inner.sort == sort_of_type(node.to.sql()) else self._variable(
                node, sort_of_type(node.to.sql()))
        if isinstance(node, exp.Select) and not source_of(node) and len(node.expressions) == 1:
            return self.value(node.expressions[0].unalias(), wanted)
        folded = text_of(node)
        if folded is not None and not isinstance(node, exp.Literal):
            return self._text(folded, wanted)
        if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Nullif):
            return self._chosen(node, wanted)
        if isinstance(node, exp.DPipe | exp.Concat):
            parts = [
                self.value(e, "text") for e in (node.flatten() if isinstance(node, exp.DPipe) else node.expressions)]
            if len(parts) < 2 or any(p.sort != "text" for p in parts):
                return self._variable(node, "text")
            return Value("text", z3.Concat(*[p.term for p in parts]), z3.Or([p.null for p in parts]))
        if isinstance(node, exp.Length):
            inner = self.value(node.this, "text")
            if inner.sort == "text":
                return Value("number", z3.Length(inner.term), inner.null)
        computed = self._text_function(node) or self._number_function(node) or self._arithmetic(node)
        if computed is not None:
            return computed
        if isinstance(node, exp.Collate):
            return self.value(node.this, wanted)
        if isinstance(node, exp.Greatest | exp.Least):
            return self._extreme(node, wanted)
        if isinstance(
            node, exp.Func | exp.Subquery | exp.Anonymous | exp.Binary | exp.Unary | exp.Bracket | exp.Interval):
            if varies(node):
                raise Unclear(node.sql())
            return self._variable(node, self.sort(node) or wanted or "number")
        raise Unclear(node.sql())

    def _extreme(self, node: exp.Expression, wanted: str) -> Value:
        """The value of GREATEST and LEAST, which ignore NULL as in PostgreSQL."""
        values = self._alike([node.this, *node.expressions], wanted)
        if values[0].sort not in ("number", "order"):
            return self._variable(node, values[0].sort)
        result = values[0]
        for v in values[1:]:
            first = result.term >= v.term if isinstance(node, exp.Greatest) else result.term <= v.term
            first = z3.Or(v.null, z3.And(z3.Not(result.null), first))
            result = Value(v.sort, z3.If(first, result.term, v.term), z3.And(result.null, v.null))
        return result

    def _text_function(self, node: exp.Expression) -> Value | None:
        """The value of POSITION, LEFT, RIGHT, and of REPLACE that changes nothing."""
        if isinstance(node, exp.StrPosition) and not any(
            node.args.get(k) for k in ("position", "occurrence")) and node.args.get("substr"):
            text, part = self.value(node.this, "text"), self.value(node.args["substr"], "text")
            if text.sort == part.sort == "text":
                return Value("number", z3.IndexOf(text.term, part.term, 0) + 1, z3.Or(text.null, part.null))
        if isinstance(node, exp.Left | exp.Right):
            text, count = self.value(node.this, "text"), whole_of(node.expression)
            if text.sort == "text" and count is not None:
                size = z3.Length(text.term)
                start: Any = z3.IntVal(0) if isinstance(node, exp.Left) else z3.If(size > count, size - count, 0)
                return Value("text", z3.SubString(text.term, start, count), text.null)
        if isinstance(node, exp.Replace) and node.expression == node.args.get("replacement"):
            return self.value(node.this, "text")
        return None

    def _number_function(self, node: exp.Expression) -> Value | None:
        """The value of a function of one number, by facts about it."""
        if isinstance(node, exp.IntDiv) and whole_of(node.right) == 1:
            return self.value(node.left, "number")
        if not isinstance(node, exp.Sqrt | exp.Sign | exp.Floor | exp.Ceil | exp.Exp | exp.Sin | exp.Cos) or any(
            node.args.get(k) for k in ("decimals", "to")):
            return None
        inner = self.value(node.this, "number")
        if inner.sort != "number":
            return None
        x, result = inner.term, z3.Real("? " + name_of(node))
        if isinstance(node, exp.Sign):
            result = z3.If(x > 0, z3.RealVal(1), z3.If(x < 0, z3.RealVal(-1), z3.RealVal(0)))
        elif isinstance(node, exp.Sqrt):
            self.bounds += [result >= 0, z3.Implies(x >= 0, result * result == x)]
        elif isinstance(node, exp.Exp):
            self.bounds += [result > 0, result >= 1 + x]
        elif isinstance(node, exp.Sin | exp.Cos):
            self.bounds += [result <= 1, result >= -1]
        else:  # FLOOR and CEIL
            result = z3.ToReal(z3.Int("? " + name_of(node)))
            up = isinstance(node, exp.Ceil)
            self.bounds += [result >= x, result - 1 < x] if up else [result <= x, x < result + 1]
        return Value("number", result, inner.null)

    def _arithmetic(self, node: exp.Expression) -> Value | None:
        if isinstance(node, exp.Neg | exp.Abs):
            inner = self.value(node.this, "number")
            if inner.sort != "number":
                return None
            return Value(
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
            base, power = self.value(node.this, "number"), number_of(node.expression.name) if isinstance(
                node.expression, exp.Literal) else None
            if base.sort == "number" and power is not None and power == int(power) and 0 <= power <= _MAX_POWER:
                term: Any = z3.RealVal(1)
                for _ in range(int(power)):
                    term = term * base.term
                return Value("number", term, base.null)
            return None
        if isinstance(node, exp.BitwiseAnd | exp.BitwiseOr | exp.BitwiseXor):
            null = z3.Or(self._null_of(node.left), self._null_of(node.right))
            return self._variable(node, "number")._replace(null=null)
        operate = _OPERATE.get(type(node))
        if operate is not None:
            a, b = self.value(node.left, "number"), self.value(node.right, "number")
            if a.sort == b.sort == "number":
                return Value("number", operate(a.term, b.term), z3.Or(a.null, b.null))
        return None

    def _constant(self, number: int, unless_null: exp.Expression) -> Value:
        return Value("number", z3.RealVal(number), self._null_of(unless_null))

    def _chosen(self, node: exp.Expression, wanted: str) -> Value:
        """The value of CASE, IF, COALESCE and NULLIF."""
        if isinstance(node, exp.Coalesce):
            values = self._alike([node.this, *node.expressions], wanted)
            result = values[-1]
            for v in reversed(values[:-1]):
                result = Value(v.sort, z3.If(v.null, result.term, v.term), z3.And(v.null, result.null))
            return result
        if isinstance(node, exp.Nullif):
            a, b = self._pair(node.this, node.expression)
            return Value(a.sort, a.term, z3.Or(a.null, z3.And(z3.Not(b.null), a.term == b.term)))
        branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
        default = node.args.get("false") if isinstance(node, exp.If) else node.args.get("default")
        subject = node.this if isinstance(node, exp.Case) else None
        values = self._alike([*(b.args["true"] for b in branches), default or exp.Null()], wanted)
        result = values[-1]
        for branch, v in zip(reversed(branches), reversed(values[:-1]), strict=True):
            held = (self.compare(exp.EQ, subject, branch.this) if subject is not None
                else self.truth(branch.this)).true
            result = Value(v.sort, z3.If(held, v.term, result.term), z3.If(held, v.null, result.null))
        return result

    def _alike(self, nodes: list[exp.Expression], wanted: str) -> list[Value]:
        """The values of nodes, of one sort."""
        sort = wanted or next((s for n in nodes if (s := self.sort(n))), "number")
        values = [null_value(sort) if isinstance(n.unnest(), exp.Null) else self.value(n, sort) for n in nodes]
        if any(v.sort != values[0].sort for v in values):
            raise Unclear("values of different types")
        return values

    def _literal(self, node: exp.Literal, wanted: str) -> Value:
        number = number_of(node.this)
        if number is not None and wanted != "text" and not (wanted == "order" and node.is_string):
            if wanted == "bool" and number in (0, 1):
                return Value("bool", z3.BoolVal(number == 1), NO)
            return Value("number", z3.RealVal(format(number, "f")), NO)
        return self._text(node.this, wanted)

    def _text(self, text: str, wanted: str) -> Value:
        if wanted == "bool" and text.lower() in ("t", "f", "true", "false"):
            return Value("bool", z3.BoolVal(text.lower()[0] == "t"), NO)
        if wanted in ("number", "bool") and (number := number_of(text)) is not None:
            return Value("number", z3.RealVal(format(number, "f")), NO)
        if wanted == "order":
            return Value("order", self._ordered(text), NO)
        if len(text) > MAX_TEXT:
            raise Unclear("a long text")
        return Value("text", z3.StringVal(text), NO)

    def _ordered(self, text: str) -> Any:
        """Each text is a number, in their order."""
        if text not in self._texts:
            code = 0
            for i in range(12):
                code = code * 0x110000 + (ord(text[i]) if i < len(text) else 0)
            more = z3.RealVal(f"{len(self._texts) + 1}/1000000") if len(text) > 12 else z3.RealVal(0)
            self._texts[text] = z3.RealVal(code + 10**6) + more
        return self._texts[text]

    def _pair(self, left: exp.Expression, right: exp.Expression) -> tuple[Value, Value]:
        """The values of two sides, of one sort."""
        wanted = self.sort(left) or self.sort(right)
        a, b = self.value(left, wanted), self.value(right, wanted or self.sort(left))
        if a.sort != b.sort:
            a, b = self.value(left, b.sort), self.value(right, a.sort)
        if a.sort != b.sort and {a.sort, b.sort} == {"bool", "number"}:
            a, b = (v if v.sort == "number" else Value("number", z3.If(v.term, z3.RealVal(1), z3.RealVal(0)), v.null)
                for v in (a, b))
        if a.sort != b.sort:
            raise Unclear("values of different types")
        return a, b


_OPERATE: dict[type[exp.Expression], Any] = {
    exp.Add: lambda a, b: a + b, exp.Sub: lambda a, b: a - b, exp.Mul: lambda a, b: a * b}
