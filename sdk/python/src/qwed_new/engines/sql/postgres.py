"""What PostgreSQL refuses behind its grammar: functions that it does not have, operands of other types, columns that
are unknown, ambiguous or not grouped.

The types of all parts are derived as PostgreSQL derives them (postgres_types). A part whose type is not known, such as
a column of a table without a definition, is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlglot import exp

from qwed_new.engines.sql import postgres_types as types
from qwed_new.engines.sql.postgres_expressions import Expressions, is_aggregate, orderable, type_named
from qwed_new.engines.sql.postgres_tree import (
    NOTHING,  # fmt: skip
    Columns,
    Relations,
    Scope,
    all_of,
    canonical,
    children,
    choice,
    inner,
    kind_of,
    literal,
    texts,
)
from qwed_new.engines.sql.postgres_types import UNKNOWN, Refused

_ANYTHING = Scope(Relations({"": None}, frozenset()), None, {})


def refuses(text: str, tables: Iterable[exp.Create], keys: frozenset[str], known: frozenset[str]) -> str:
    """Return why PostgreSQL refuses a query that its grammar accepts, or "".

    tables are the definitions of the schema, keys the columns that identify a row, with their tables, and known the
    functions of any database that are judged here.
    """
    import postgast

    try:
        tree = postgast.parse(text)
        judge = _Judge({t.this.this.name.lower(): _columns(t) for t in tables}, keys, known)
        for statement in tree.stmts:
            if kind_of(statement.stmt) == "select_stmt":
                judge.query(statement.stmt.select_stmt, None, {})
            else:
                for select in all_of(statement, "select_stmt", ("select_stmt",)):
                    judge.query(select, _ANYTHING, {})
    except Refused as refused:
        return str(refused)
    return ""


def _columns(table: exp.Create) -> Columns | None:
    """The columns of a definition with their types, or None if PostgreSQL does not read it."""
    import postgast

    try:
        tree = postgast.parse(table.sql(dialect="postgres"))
        elements = tree.stmts[0].stmt.create_stmt.table_elts
        return [(e.column_def.colname, type_named(e.column_def.type_name)) for e in elements
            if kind_of(e) == "column_def"]
    except (postgast.PgQueryError, Refused):
        return None


class _Judge(Expressions):
    def __init__(self, tables: Mapping[str, Columns | None], keys: frozenset[str], known: frozenset[str]) -> None:
        self._tables, self._keys, self.known = tables, keys, known

    def query(self, s: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Columns | None:
        columns = self._query(s, outer, ctes)
        return None if columns is None else [(n, "text" if k == UNKNOWN else k) for n, k in columns]

    def _query(self, s: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Columns | None:
        """The columns of a query, in which literals have no type yet."""
        ctes = self._with(s, outer, ctes)
        if s.HasField("larg") and s.HasField("rarg"):
            columns = self._union(s, outer, ctes)
            scope = Scope(NOTHING, outer, ctes)
            for item in s.sort_clause:
                self._sorted_union(item.sort_by.node, columns)
        elif len(s.values_lists):
            scope = Scope(NOTHING, outer, ctes)
            columns = self._values(s, scope)
        else:
            scope, columns = self._select(s, outer, ctes)
        for node, name in ((s.limit_count, "LIMIT"), (s.limit_offset, "OFFSET")):
            self._limit(node, name, scope)
        return columns

    def _with(self, s: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Mapping[str, Columns | None]:
        if not s.HasField("with_clause"):
            return ctes
        known, own = dict(ctes), set[str]()
        for node in s.with_clause.ctes:
            cte, query = node.common_table_expr, node.common_table_expr.ctequery
            if cte.ctename in own:
                raise Refused(f"WITH defines {cte.ctename} twice")
            own.add(cte.ctename)
            columns: Columns | None = None
            if kind_of(query) == "select_stmt":
                select = query.select_stmt
                itself = any(t.relname == cte.ctename for t in all_of(select, "range_var"))
                if s.with_clause.recursive and itself and not select.HasField("larg"):
                    raise Refused(f"the recursive {cte.ctename} is not a UNION of a first and a repeated part")
                if s.with_clause.recursive and itself:
                    first = self.query(select.larg, outer, known)
                    known[cte.ctename] = _renamed(first, cte.aliascolnames, cte.ctename)
                    columns = self.query(select, outer, known)
                    for (name, one), (_, both) in zip(first or (), columns or (), strict=False):
                        if None not in (one, both) and one not in (both, UNKNOWN):
                            raise Refused(f"the recursive column {name} is {types.shown(one)} at first and "
                                f"{types.shown(both)} later; convert it with CAST")
                else:
                    columns = self.query(select, outer, known)
            known[cte.ctename] = _renamed(columns, cte.aliascolnames, cte.ctename)
        return known

    def _union(self, s: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> Columns | None:
        left, right = self._query(s.larg, outer, ctes), self._query(s.rarg, outer, ctes)
        if left is None or right is None:
            return None
        if len(left) != len(right):
            raise Refused(f"a UNION of {len(left)} and {len(right)} columns")
        columns: Columns = []
        for place, ((name, one), (_, other)) in enumerate(zip(left, right, strict=True)):
            kind = types.common([one, other], "the columns of a UNION")
            for side in (s.larg, s.rarg):
                if len(side.target_list) == len(left):
                    self._readable([side.target_list[place].res_target.val], kind)
            if not s.all:
                orderable(kind)
            columns.append((name, kind))
        return columns

    def _sorted_union(self, node: Any, columns: Columns | None) -> None:
        names = texts(node.column_ref.fields) if kind_of(node) == "column_ref" else []
        if columns is not None and not _position(node, len(columns), "ORDER BY") and (
            len(names) != 1 or names[0] not in {n for n, _ in columns}):
            raise Refused("ORDER BY behind a UNION takes the names or positions of its columns")

    def _values(self, s: Any, scope: Scope) -> Columns:
        rows = [list(r.list.items) for r in s.values_lists]
        if len({len(r) for r in rows}) > 1:
            raise Refused("VALUES has rows of different widths")
        return [(f"column{i + 1}", self.one_type([r[i] for r in rows], "the values of a column", scope))
            for i in range(len(rows[0]))]

    def _select(self, s: Any, outer: Scope | None, ctes: Mapping[str, Columns | None]) -> tuple[Scope, Columns | None]:
        relations = NOTHING
        for item in s.from_clause:
            relations = relations.joined(self._source(item, Scope(relations, outer, ctes)))
        windows = frozenset(w.window_def.name for w in s.window_clause)
        scope = Scope(relations, outer, ctes, windows)
        for window in (w.window_def for w in s.window_clause):
            for part in (*window.partition_clause, *(o.sort_by.node for o in window.order_clause)):
                orderable(self.type_of(part, scope))
        self.truth(s.where_clause, "WHERE", scope)
        _no_aggregates(s.where_clause, "WHERE")
        columns = self._targets(s, scope)
        groups = self._groups(s, scope, columns)
        self.truth(s.having_clause, "HAVING", scope)
        if any(c.HasField("over") for c in all_of(s.having_clause, "func_call", ("sub_link",))):
            raise Refused("a window function in HAVING")
        sorted_by = [self._sorted(o.sort_by.node, s, scope, columns) for o in s.sort_clause]
        self._distinct(s, scope, columns, [n for n in sorted_by if n is not None])
        if groups is not None:
            self._grouped(s, scope, groups)
        return scope, columns

    def _targets(self, s: Any, scope: Scope) -> Columns | None:
        columns: Columns | None = []
        for target in s.target_list:
            value = target.res_target.val
            fields = value.column_ref.fields if kind_of(value) == "column_ref" else ()
            if len(fields) and kind_of(fields[-1]) == "a_star":
                found = scope.relations.star() if len(fields) == 1 else scope.relations.tables.get(
                    texts(fields)[-1]) if texts(fields) else None
                columns = None if found is None or columns is None else columns + found
                continue
            kind = self.type_of(value, scope)
            if columns is not None:
                columns.append((target.res_target.name or _name(value), kind))
        return columns

    def _source(self, item: Any, scope: Scope) -> Relations:
        """The tables of one item of FROM; scope is what LATERAL sees."""
        kind, node = kind_of(item), inner(item)
        if kind == "join_expr":
            return self._join(node, scope)
        if kind == "range_table_sample":
            return self._source(node.relation, scope)
        alias = node.alias.aliasname if node.DESCRIPTOR.fields_by_name.get("alias") else ""
        columns: Columns | None = None
        names = node.alias.colnames if alias else ()
        if kind == "range_var":
            alias = alias or node.relname
            if not node.schemaname and node.relname in scope.ctes:
                columns = scope.ctes[node.relname]
            else:
                columns = self._tables.get(node.relname)
        elif kind == "range_subselect":
            if not alias:
                raise Refused("a subquery in FROM has no alias")
            outer = scope if node.lateral else scope.outer
            if node.lateral:
                _own_aggregates(node.subquery.select_stmt, scope)
            columns = self.query(node.subquery.select_stmt, outer, scope.ctes)
        elif kind == "range_function":
            alias, columns = self._rows(node, alias, scope)
        return Relations({alias or f" {id(node)}": _renamed(columns, names, alias)}, frozenset())

    def _rows(self, node: Any, alias: str, scope: Scope) -> tuple[str, Columns | None]:
        """The alias and the columns of a function in FROM."""
        calls = [inner(f.list.items[0]) for f in node.functions]
        kinds = [self.type_of(f.list.items[0], scope) for f in node.functions]
        if len(calls) != 1 or calls[0].DESCRIPTOR.name != "FuncCall":
            return alias, None
        name = texts(calls[0].funcname)[-1]
        if len(node.coldeflist):
            return alias or name, [(c.column_def.colname, type_named(c.column_def.type_name)) for c in node.coldeflist]
        if kinds[0] in (None, "record", UNKNOWN):
            return alias or name, None
        count = [("ordinality", "int8")] if node.ordinality else []
        return alias or name, [(alias or name, kinds[0]), *count]

    def _join(self, node: Any, scope: Scope) -> Relations:
        left = self._source(node.larg, scope)
        right = self._source(node.rarg, scope._replace(relations=Relations(
            {**scope.relations.tables, **left.tables}, scope.relations.merged | left.merged)))
        names = frozenset(texts(node.using_clause))
        ours, theirs = left.star(), right.star()
        if node.is_natural and ours is not None and theirs is not None:
            names = frozenset(n for n, _ in ours) & {n for n, _ in theirs}
        for name in names if ours is not None and theirs is not None else ():
            kinds = [next((k for n, k in side if n == name), "") for side in (ours, theirs)]
            if "" in kinds:
                raise Refused(f"USING has the column {name}, which is not in both tables")
            types.operator("=", kinds)
        joined = left.joined(right, names)
        inside = Scope(joined, scope.outer, scope.ctes)
        self.truth(node.quals, "ON", inside)
        _no_aggregates(node.quals, "ON")
        return Relations({node.alias.aliasname: joined.star()}, frozenset()) if node.alias.aliasname else joined

    def _limit(self, node: Any, name: str, scope: Scope) -> None:
        if not kind_of(node):
            return
        kind = self.type_of(node, scope)
        text = literal(node)
        if (kind_of(node) == "a_const" and node.a_const.ival.ival < 0) or (
            kind not in (None, UNKNOWN) and types.category(kind) != "N") or (
            text is not None and types.unreadable(text, "int8")):
            raise Refused(f"{name} is not a number of rows")
        if any(True for _ in all_of(node, "column_ref", ("sub_link",))):
            raise Refused(f"{name} has a column")

    def _sorted(self, node: Any, s: Any, scope: Scope, columns: Columns | None) -> Any:
        """Judge an item of ORDER BY, and return its expression; None if that is not known."""
        place = _position(node, len(columns), "ORDER BY") if columns is not None else 0
        names = texts(node.column_ref.fields) if kind_of(node) == "column_ref" else []
        if not place and columns is not None and len(names) == 1:
            place = next((i + 1 for i, (n, _) in enumerate(columns) if n == names[0]), 0)
        if place and columns is not None:
            orderable(columns[place - 1][1])
            return s.target_list[place - 1].res_target.val if len(s.target_list) == len(columns) else None
        if columns is None and kind_of(node) == "a_const":
            return None
        orderable(self.type_of(node, scope))
        return node

    def _distinct(self, s: Any, scope: Scope, columns: Columns | None, sorted_by: list[Any]) -> None:
        on = [n for n in s.distinct_clause if kind_of(n)]
        if not len(s.distinct_clause):
            return
        for _, kind in columns or () if not on else ():
            orderable(kind)
        chosen = [self._sorted(n, s, scope, columns) for n in on]
        allowed = [t.res_target.val for t in s.target_list] if not on else chosen
        if None in allowed or any(
            kind_of(f) == "a_star" for t in s.target_list for f in t.res_target.val.column_ref.fields):
            return
        known = {canonical(n, scope) for n in allowed}
        for node in sorted_by[: len(on) or None]:
            if canonical(node, scope) not in known:
                raise Refused("ORDER BY has an expression that DISTINCT does not have")

    def _groups(self, s: Any, scope: Scope, columns: Columns | None) -> list[Any] | None:
        """The expressions of GROUP BY; None if the query has no groups or they are not known."""
        groups = []
        for node in _flat(s.group_clause):
            names = texts(node.column_ref.fields) if kind_of(node) == "column_ref" else []
            place = _position(node, len(columns), "GROUP BY") if columns is not None else 0
            if not place and len(names) == 1 and columns is not None and not _has(scope, names[0]):
                place = next((i + 1 for i, (n, _) in enumerate(columns) if n == names[0]), 0)
            if place and columns is not None and len(s.target_list) == len(columns):
                node = s.target_list[place - 1].res_target.val
            elif columns is None and kind_of(node) in ("a_const", "column_ref"):
                return None
            _no_aggregates(node, "GROUP BY")
            orderable(self.type_of(node, scope))
            groups.append(node)
        if len(s.group_clause) or kind_of(s.having_clause) or any(
            is_aggregate(c) for part in (*s.target_list, *s.sort_clause)
            for c in all_of(part, "func_call", ("sub_link",))):
            return groups
        return None

    def _grouped(self, s: Any, scope: Scope, groups: list[Any]) -> None:
        """Refuse columns beside aggregates that are not grouped."""
        grouped = {canonical(g, scope) for g in groups}
        names = {n[2:] for n in grouped if n[0] == "column"}
        # The columns of a table whose key is grouped.
        whole = {t for t, c in names if any(f"{table}.{c}" in self._keys for table in self._aliased(s, t))}
        aliases = {t.res_target.name for t in s.target_list if t.res_target.name}
        sorts = [o.sort_by.node for o in s.sort_clause]
        parts = [t.res_target.val for t in s.target_list] + [s.having_clause, *s.window_clause] + [
            n for n in sorts if not (kind_of(n) == "column_ref" and texts(n.column_ref.fields)[-1:] and texts(
                n.column_ref.fields)[-1] in aliases) and kind_of(n) != "a_const"]
        for part in parts:
            for column in self._outside(part, scope, grouped, whole):
                raise Refused(f"the column {column} is neither grouped nor in an aggregate")

    def _aliased(self, s: Any, alias: str) -> Iterator[str]:
        for item in s.from_clause:
            for table in all_of(item, "range_var", ("range_subselect",)):
                if alias in (table.alias.aliasname, table.relname):
                    yield table.relname

    def _outside(self, node: Any, scope: Scope, grouped: set[Any], whole: set[str]) -> Iterator[str]:
        """The columns of an expression that are not grouped and not in an aggregate or a subquery; `*` for all
        columns."""
        name = kind_of(node)
        if grouped and name and canonical(node, scope) in grouped:
            return
        if name == "sub_link":
            node, own = node.sub_link.subselect, {
                n for t in all_of(node, "range_var") for n in (t.alias.aliasname, t.relname)}
            names = [texts(c.fields) for c in all_of(node, "column_ref")]
            yield from (
                c[-1] for c in names if len(c) > 1 and c[-2] in scope.relations.tables and c[-2] not in own | whole
                and ("column", id(scope.relations.tables), c[-2], c[-1]) not in grouped)
            return
        if name == "func_call" and is_aggregate(node.func_call):
            return
        if name == "column_ref":
            names = texts(node.column_ref.fields)
            if len(names) != len(node.column_ref.fields):
                if not whole >= (set(names) or scope.relations.tables.keys()):
                    yield "*"
                return
            found = scope.find(names)
            if found is not None and (found[0] is not scope or found[1] in whole):
                return
            if found is None and any(n[-1] == names[-1] for n in grouped if n[0] == "column_ref" or n[0] == "column"):
                return
            if found is not None or not grouped or all(n[0] == "column" for n in grouped):
                yield names[-1]
            return
        for child in children(inner(node)):
            yield from self._outside(child, scope, grouped, whole)


def _flat(nodes: Iterable[Any]) -> Iterator[Any]:
    """The expressions of GROUP BY, those of ROLLUP, CUBE and GROUPING SETS included."""
    for node in nodes:
        if kind_of(node) == "grouping_set":
            yield from _flat(node.grouping_set.content)
        elif kind_of(node) == "row_expr" and choice(node.row_expr, "row_format") == "COERCE_IMPLICIT_CAST":
            yield from _flat(node.row_expr.args)
        else:
            yield node


def _has(scope: Scope, name: str) -> bool:
    tables = scope.relations.tables.values()
    return None in tables or any(n == name for columns in tables for n, _ in columns or ())


def _position(node: Any, width: int, clause: str) -> int:
    """The position of a column that a constant names, or 0."""
    if kind_of(node) != "a_const":
        return 0
    if not node.a_const.HasField("ival"):
        raise Refused(f"{clause} has a constant that is not the position of a column")
    if not 0 < node.a_const.ival.ival <= width:
        raise Refused(f"{clause} names the column {node.a_const.ival.ival} of {width}")
    return int(node.a_const.ival.ival)


def _no_aggregates(node: Any, clause: str) -> None:
    for call in all_of(node, "func_call", ("sub_link",)):
        if is_aggregate(call) or call.HasField("over"):
            raise Refused(f"{texts(call.funcname)[-1]} is computed from groups and stands in {clause}")


def _own_aggregates(select: Any, outer: Scope) -> None:
    """Refuse aggregates of LATERAL that have only columns of the query around it, to which they belong then."""
    own = {n for t in all_of(select, "range_var") for n in (t.alias.aliasname, t.relname)}
    for call in all_of(select, "func_call", ("sub_link",)):
        tables = {texts(c.fields)[-2] if len(c.fields) > 1 else "" for c in all_of(call, "column_ref")} if (
            is_aggregate(call)) else set()
        if tables and tables <= outer.relations.tables.keys() - own:
            raise Refused(f"{texts(call.funcname)[-1]} is computed from groups of the query around LATERAL")


def _renamed(columns: Columns | None, names: Any, what: str) -> Columns | None:
    """Columns with the names that an alias gives them."""
    given = texts(names)
    if columns is None:
        return None
    if len(given) > len(columns):
        raise Refused(f"{what} has {len(columns)} columns, and {len(given)} are named")
    return [(n, k) for n, (_, k) in zip([*given, *(c[0] for c in columns[len(given) :])], columns, strict=True)]


def _name(node: Any) -> str:
    """The name that PostgreSQL gives to a column without an alias."""
    kind, message = kind_of(node), inner(node)
    if kind == "column_ref":
        return (texts(message.fields) or ["?column?"])[-1]
    if kind == "func_call":
        return texts(message.funcname)[-1]
    if kind == "type_cast":
        found = _name(message.arg)
        return found if found != "?column?" else texts(message.type_name.names)[-1]
    if kind == "collate_clause":
        return _name(message.arg)
    if kind == "sub_link":
        form = choice(message, "sub_link_type")
        targets = message.subselect.select_stmt.target_list
        if form == "EXPR_SUBLINK" and len(targets) == 1:
            return targets[0].res_target.name or _name(targets[0].res_target.val)
        return {"EXISTS_SUBLINK": "exists", "ARRAY_SUBLINK": "array"}.get(form, "?column?")
    if kind == "min_max_expr":
        return "greatest" if choice(message, "op") == "IS_GREATEST" else "least"
    if kind == "sqlvalue_function":
        return choice(message, "op").removeprefix("SVFOP_").removesuffix("_N").lower()
    if kind == "a_expr" and choice(message, "kind") == "AEXPR_NULLIF":
        return "nullif"
    return {"case_expr": "case", "coalesce_expr": "coalesce", "a_array_expr": "array", "row_expr": "row"}.get(
        kind, "?column?")
