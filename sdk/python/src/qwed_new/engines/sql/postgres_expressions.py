"""The types of PostgreSQL's expressions, and what is wrong with their operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from qwed_new.engines.sql import postgres_types as types
from qwed_new.engines.sql.postgres_tree import Columns, Scope, all_of, choice, inner, kind_of, literal, texts
from qwed_new.engines.sql.postgres_types import UNKNOWN, Refused, Type

_SERIAL = {"serial": "int4", "bigserial": "int8", "smallserial": "int2"}
_OF_OTHERS = frozenset(
    "tinyint mediumint datetime nvarchar string blob clob number double longtext mediumtext signed unsigned int64 "
    "float64 varchar2 bytes datetime2 smalldatetime".split())
_CLOCK = {
    "DATE": "date", "TIME": "timetz", "TIME_N": "timetz", "TIMESTAMP": "timestamptz", "TIMESTAMP_N": "timestamptz",
    "LOCALTIME": "time", "LOCALTIME_N": "time", "LOCALTIMESTAMP": "timestamp", "LOCALTIMESTAMP_N": "timestamp"}
# Functions of later releases, of extensions that many databases have, and those that the grammar has.
_LATER = frozenset(
    "any_value json_array json_arrayagg json_object json_objectagg json_exists json_query json_value json_serialize "
    "date_add date_subtract array_sort array_shuffle array_sample crc32 crc32c gamma lgamma reverse casefold "
    "system_user similarity levenshtein soundex metaphone difference unaccent word_similarity cast coalesce nullif "
    "greatest least row grouping extract xmlconcat".split())


def type_named(node: Any) -> Type:
    """The type that a TypeName names; None for one that the catalog does not have."""
    names = texts(node.names)
    name = _SERIAL.get(names[-1], names[-1]) if names else ""
    if name in _OF_OTHERS and len(names) == 1:
        raise Refused(f"PostgreSQL has no type {name}")
    found = name if name in types.catalog().categories else None
    return types.array_of(found) if len(node.array_bounds) else found


_OF_DATES = frozenset({"extract", "date_part", "date_trunc"})
_UNITS = frozenset(
    "century centuries cent c decade decades decs dec day days d dow doy epoch hour hours hr hrs h isodow isoyear "
    "julian microsecond microseconds us usec usecs usecond useconds millennium millennia mils mil millisecond "
    "milliseconds msec msecs ms msecond mseconds minute minutes min mins m month months mon mons quarter qtr "
    "second seconds sec secs s timezone timezone_hour timezone_minute timezone_h timezone_m week "
    "weeks w year years yr yrs y".split())


class Expressions:
    """Judges expressions. A judge of queries extends it."""

    known: frozenset[str]  # the functions of any database that are judged by their names

    def query(self, s: Any, outer: Scope | None, ctes: Any) -> Columns | None:
        """The columns of a query, after it was judged."""
        raise NotImplementedError

    def type_of(self, node: Any, scope: Scope) -> Type:
        """The type of an expression, after its parts were judged."""
        judge = getattr(self, "_of_" + kind_of(node), None)
        return judge(inner(node), scope) if judge is not None else None

    def truth(self, node: Any, where: str, scope: Scope) -> None:
        """Judge what must be a condition."""
        found = self.type_of(node, scope) if kind_of(node) else None
        if found not in (None, UNKNOWN, "bool"):
            raise Refused(f"{where} takes a condition and has {types.shown(found)}")
        self._readable([node], "bool")

    def one_type(self, nodes: Sequence[Any], where: str, scope: Scope) -> Type:
        """Judge expressions that must have one type, and return it."""
        found = types.common([self.type_of(n, scope) for n in nodes], where)
        self._readable(nodes, found)
        return found

    def _readable(self, nodes: Iterable[Any], target: Type) -> None:
        for node in nodes:
            text = literal(node)
            if text is not None and types.unreadable(text, target):
                raise Refused(f"{text[:60]!r} is not a value of the type {types.shown(target)}")

    def _operation(self, name: str, nodes: Sequence[Any], scope: Scope) -> Type:
        """Judge an operator with its operands, and return the type of its result."""
        if len(nodes) == 2 and all(kind_of(n) == "row_expr" for n in nodes):
            left, right = (n.row_expr.args for n in nodes)
            if len(left) != len(right):
                raise Refused(f"rows of {len(left)} and {len(right)} values are compared")
            for pair in zip(left, right, strict=True):
                self._operation(name, pair, scope)
            return "bool"
        operands = [self.type_of(n, scope) for n in nodes]
        result = types.operator(name, operands)
        for node, target in zip(nodes, types.operator_takes(name, operands), strict=False):
            self._readable([node], target)
        return result

    def _of_a_const(self, node: Any, _: Scope) -> Type:
        if node.HasField("fval"):
            digits = node.fval.fval
            return "int8" if digits.isdigit() and int(digits) < 1 << 63 else "numeric"
        return "int4" if node.HasField("ival") else "bool" if node.HasField("boolval") else (
            "bit" if node.HasField("bsval") else UNKNOWN)

    def _of_column_ref(self, node: Any, scope: Scope) -> Type:
        names = texts(node.fields)
        if len(names) != len(node.fields) or not names:
            return None
        found = scope.find(names)
        return found[2] if found else None

    def _of_type_cast(self, node: Any, scope: Scope) -> Type:
        target = type_named(node.type_name)
        empty = kind_of(node.arg) == "a_array_expr" and not len(inner(node.arg).elements)
        source = None if empty else self.type_of(node.arg, scope)
        self._readable([node.arg], target)
        if not types.castable(source, target):
            raise Refused(f"CAST does not convert {types.shown(source)} to {types.shown(target)}")
        return target

    def _of_collate_clause(self, node: Any, scope: Scope) -> Type:
        found = self.type_of(node.arg, scope)
        if found not in (None, UNKNOWN) and types.category(found) not in "SA":
            raise Refused(f"COLLATE of {types.shown(found)}")
        return "text" if found == UNKNOWN else found

    def _of_a_expr(self, node: Any, scope: Scope) -> Type:
        name, kind = (texts(node.name) or [""])[-1], choice(node, "kind").removeprefix("AEXPR_")
        sides = [n for n in (node.lexpr, node.rexpr) if kind_of(n)]
        if len(node.name) > 1:  # OPERATOR(schema.name)
            return None
        if kind == "IN":
            return self._in(node, name, scope)
        if kind.endswith(("BETWEEN", "BETWEEN_SYM")):
            for operator, item in zip((">=", "<="), node.rexpr.list.items, strict=True):
                self._operation(operator, (node.lexpr, item), scope)
            return "bool"
        if kind in ("OP_ANY", "OP_ALL"):
            return self._with_array(node, name, scope)
        if kind == "NULLIF":
            self._operation("=", sides, scope)
            left = self.type_of(node.lexpr, scope)
            return "text" if left == UNKNOWN else left
        if kind in ("DISTINCT", "NOT_DISTINCT"):
            self._operation("=", sides, scope)
            return "bool"
        if name == "=" and any(literal(n) is None and kind_of(n) == "a_const" and n.a_const.isnull for n in sides):
            for side in sides:
                self.type_of(side, scope)
            return "bool"
        return self._operation(name, sides, scope)

    def _in(self, node: Any, name: str, scope: Scope) -> Type:
        items = list(node.rexpr.list.items)
        if kind_of(node.lexpr) != "row_expr":
            try:
                self.one_type([node.lexpr, *items], "the operands of IN", scope)
                return "bool"
            except Refused:
                if not any(kind_of(i) == "column_ref" for i in items):
                    raise
        for item in items:
            self._operation(name, (node.lexpr, item), scope)
        return "bool"

    def _with_array(self, node: Any, name: str, scope: Scope) -> Type:
        left, right = self.type_of(node.lexpr, scope), self.type_of(node.rexpr, scope)
        if right in (None, UNKNOWN):
            return "bool"
        element = types.element_of(right)
        if types.category(right) != "A":
            raise Refused(f"{name} ANY or ALL takes an array and has {types.shown(right)}")
        types.operator(name, [left, element])
        self._readable([node.lexpr], element)
        return "bool"

    def _of_bool_expr(self, node: Any, scope: Scope) -> Type:
        for argument in node.args:
            self.truth(argument, ("AND", "AND", "OR", "NOT")[node.boolop], scope)
        return "bool"

    def _of_null_test(self, node: Any, scope: Scope) -> Type:
        self.type_of(node.arg, scope)
        return "bool"

    def _of_boolean_test(self, node: Any, scope: Scope) -> Type:
        self.truth(node.arg, "IS TRUE", scope)
        return "bool"

    def _of_coalesce_expr(self, node: Any, scope: Scope) -> Type:
        return self.one_type(node.args, "the arguments of COALESCE", scope)

    def _of_min_max_expr(self, node: Any, scope: Scope) -> Type:
        return self.one_type(node.args, "the arguments of GREATEST or LEAST", scope)

    def _of_sqlvalue_function(self, node: Any, _: Scope) -> Type:
        name = choice(node, "op").removeprefix("SVFOP_")
        return _CLOCK.get(name.removeprefix("CURRENT_"), "name") if "LOCAL" not in name else _CLOCK[name]

    def _of_case_expr(self, node: Any, scope: Scope) -> Type:
        for when in node.args:
            if literal(node.arg) is not None:  # CASE gives it a type before it is compared
                types.operator("=", ["text", self.type_of(when.case_when.expr, scope)])
            elif kind_of(node.arg):
                self._operation("=", (node.arg, when.case_when.expr), scope)
            else:
                self.truth(when.case_when.expr, "WHEN", scope)
        results = [node.defresult] if kind_of(node.defresult) else []
        return self.one_type([*results, *(w.case_when.result for w in node.args)], "the results of CASE", scope)

    def _of_a_array_expr(self, node: Any, scope: Scope) -> Type:
        if not len(node.elements):
            raise Refused("ARRAY[] has no type; convert it with a cast")
        return types.array_of(self.one_type(node.elements, "the elements of ARRAY", scope))

    def _of_row_expr(self, node: Any, scope: Scope) -> Type:
        for argument in node.args:
            self.type_of(argument, scope)
        return "record"

    def _of_a_indirection(self, node: Any, scope: Scope) -> Type:
        found = self.type_of(node.arg, scope)
        index = [i.a_indices for i in node.indirection if kind_of(i) == "a_indices"]
        if any(kind_of(i) == "string" for i in node.indirection) and found in types.catalog().categories and (
            found != "record"):
            raise Refused(f"{types.shown(found)} has no fields")
        if len(index) != len(node.indirection) or found in (None, "jsonb", "record"):
            return found if found == "jsonb" else None
        if types.category(found) != "A":
            raise Refused(f"{types.shown(found)} has no elements")
        return found if any(i.is_slice for i in index) else types.element_of(found)

    def _of_sub_link(self, node: Any, scope: Scope) -> Type:
        kind = choice(node, "sub_link_type").removesuffix("_SUBLINK")
        columns = self.query(node.subselect.select_stmt, scope, scope.ctes)
        if kind == "EXISTS":
            return "bool"
        tested = list(node.testexpr.row_expr.args) if kind_of(node.testexpr) == "row_expr" else (
            [node.testexpr] if kind_of(node.testexpr) else [])
        if columns is None:
            return "bool" if tested else None
        if len(columns) != (len(tested) or 1):
            raise Refused(f"a subquery has {len(columns)} columns where {len(tested) or 1} are compared")
        if not tested:
            return types.array_of(columns[0][1]) if kind == "ARRAY" else columns[0][1]
        name = (texts(node.oper_name) or ["="])[-1]
        for side, (_, found) in zip(tested, columns, strict=True):
            types.operator(name, [self.type_of(side, scope), found])
            self._readable([side], found)
        return "bool"

    def _of_named_arg_expr(self, node: Any, scope: Scope) -> Type:
        return self.type_of(node.arg, scope)

    def _of_grouping_func(self, node: Any, scope: Scope) -> Type:
        return "int4"

    def _of_func_call(self, node: Any, scope: Scope) -> Type:
        names = texts(node.funcname)
        name = names[-1].lower()
        ordered = [o.sort_by.node for o in node.agg_order]
        arguments = [*node.args, *(ordered if node.agg_within_group else ())]
        found = [self.type_of(a, scope) for a in arguments]
        for part in ordered:
            self.type_of(part, scope)
        self._window(node, scope)
        if kind_of(node.agg_filter):
            self.truth(node.agg_filter, "FILTER", scope)
        if name not in types.catalog().functions:
            if len(names) == 1 and name in self.known and name not in _LATER and not name.startswith("st_"):
                raise Refused(f"PostgreSQL has no function {name}")
            return None
        if node.func_variadic or any(kind_of(a) == "named_arg_expr" for a in node.args):
            return None
        if node.agg_within_group and any("h" in r.kind for r in types.catalog().functions[name]):
            return None
        if name == "count" and not found and not node.agg_star:
            raise Refused("count() takes * or an argument")
        if name in _OF_DATES and found and (unit := literal(node.args[0])) is not None and unit.lower() not in _UNITS:
            raise Refused(f"{unit!r} is not a unit of time")
        row, result = types.function(name, found)
        for argument, target in zip(arguments, row.arguments, strict=True):
            self._readable([argument], target)
        self._use(node, name, row.kind)
        return result

    def _use(self, node: Any, name: str, kind: str) -> None:
        """Judge what only aggregates and window functions have."""
        windowed = node.HasField("over")
        if kind.startswith("w") and not windowed:
            raise Refused(f"the window function {name} has no OVER")
        if windowed and kind[0] not in "aw":
            raise Refused(f"{name} has OVER and is not a window function")
        for used, what in ((kind_of(node.agg_filter), "FILTER"), (node.agg_distinct, "DISTINCT"),
            (node.agg_order, "ORDER BY"), (node.agg_star, "*")):
            if used and not kind.startswith("a"):
                raise Refused(f"{name} has {what} and is not an aggregate")
        if windowed and node.agg_distinct:
            raise Refused(f"{name} has OVER and DISTINCT")
        if kind.startswith("a") and not windowed:
            for part in (*node.args, *node.agg_order, node.agg_filter):
                for call in all_of(part, "func_call", ("sub_link",)):
                    if is_aggregate(call) or call.HasField("over"):
                        raise Refused(f"the aggregate {name} has {texts(call.funcname)[-1]} inside")

    def _window(self, node: Any, scope: Scope) -> None:
        if not node.HasField("over"):
            return
        for part in (*node.over.partition_clause, *(o.sort_by.node for o in node.over.order_clause)):
            orderable(self.type_of(part, scope))
            for call in all_of(part, "func_call", ("sub_link",)):
                if call.HasField("over"):
                    raise Refused("a window function is inside of another one")
        for argument in node.args:
            if any(c.HasField("over") for c in all_of(argument, "func_call", ("sub_link",))):
                raise Refused("a window function is inside of another one")
        for name in (node.over.name, node.over.refname):
            if name and name not in scope.windows:
                raise Refused(f"there is no window {name}")


def is_aggregate(call: Any) -> bool:
    """Report whether a call is that of an aggregate of a group."""
    rows = types.catalog().functions.get((texts(call.funcname) or [""])[-1].lower(), ())
    return bool(rows) and not call.HasField("over") and all(r.kind.startswith("a") for r in rows)


_UNORDERED = frozenset({"json", "xml", "point", "line", "lseg", "path", "polygon", "circle", "box"})


def orderable(kind: Type) -> None:
    """Refuse a type whose values are neither equal nor ordered."""
    if kind in _UNORDERED:
        raise Refused(f"values of the type {kind} are not compared; convert them with CAST")
