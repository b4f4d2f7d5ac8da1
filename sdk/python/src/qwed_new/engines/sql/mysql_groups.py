"""The columns beside aggregates that MySQL refuses, because its default is ONLY_FULL_GROUP_BY: those that are neither
grouped nor determined by what is grouped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from qwed_new.engines.sql.sorts import source_of

Column = tuple[str, str]  # a table's alias and a column, in lower case


def ungrouped(statement: exp.Expression, tables: Sequence[exp.Create]) -> str:
    """Return why MySQL refuses a query for a column that is not grouped, or ""."""
    known = {t.this.this.name.lower(): t for t in tables}
    own = {c.alias.lower() for c in statement.find_all(exp.CTE)}
    for select in statement.find_all(exp.Select):
        group = select.args.get("group")
        aggregates = any(not isinstance(a.parent, exp.Window) and _of(a, select) for a in select.find_all(exp.AggFunc))
        if not (group or aggregates) or (group and len([k for k, v in group.args.items() if v]) > 1):
            continue
        sources = [source_of(select), *(select.args.get("joins") or ())]
        named = {
            s.this.alias_or_name.lower(): known[s.this.name.lower()] for s in sources if s is not None
            and isinstance(s.this, exp.Table) and s.this.name.lower() in known and s.this.name.lower() not in own}
        if len(named) == len([s for s in sources if s is not None]) and (column := _Grouped(select, named).wrong()):
            return f"the column {column} is neither grouped nor in an aggregate"
    return ""


def _of(node: exp.Expression, select: exp.Select) -> bool:
    return node.find_ancestor(exp.Select) is select


class _Grouped:
    def __init__(self, select: exp.Select, tables: dict[str, exp.Create]) -> None:
        self._select, self._tables = select, tables
        self._columns = {a: {c.name.lower() for c in t.this.expressions if isinstance(c, exp.ColumnDef)}
            for a, t in tables.items()}
        self._aliases = {e.alias.lower(): e.this for e in select.expressions if isinstance(e, exp.Alias)}
        group = select.args.get("group")
        grouped = [self._meant(e) for e in group.expressions] if group else []
        self._texts = {e.sql().lower() for e in grouped}
        self._fixed = {c for e in grouped if isinstance(e, exp.Column) and (c := self._place(e))}
        self._close()

    def _meant(self, node: exp.Expression) -> exp.Expression:
        """The expression that GROUP BY names by a position or an alias."""
        if isinstance(node, exp.Literal) and node.this.isdigit():
            if 0 < int(node.this) <= len(self._select.expressions):
                return self._select.expressions[int(node.this) - 1].unalias()
        if isinstance(node, exp.Column) and not node.table and not self._place(node):
            return self._aliases.get(node.name.lower(), node)
        return node

    def _place(self, column: exp.Column) -> Column | None:
        name, table = column.name.lower(), column.table.lower()
        found = [table] if table else [a for a, names in self._columns.items() if name in names]
        return (found[0], name) if len(found) == 1 and name in self._columns.get(found[0], ()) else None

    def _close(self) -> None:
        """Add the columns that are equal to a fixed one or to a constant, and those of rows whose key is fixed."""
        pairs: list[tuple[Column | None, Column | None]] = []
        for equal in self._select.find_all(exp.EQ):
            if _of(equal, self._select) and equal.find_ancestor(exp.Where, exp.Join):
                left, right = (self._place(s) if isinstance(s, exp.Column) else None for s in (equal.left, equal.right))
                pairs += [(left, right), (right, left)]
        for join in self._select.args.get("joins") or ():
            using = {i.name.lower() for i in join.args.get("using") or ()}
            ours = [
                (a, c) for a, names in self._columns.items() for c in names if c in using or join.method == "NATURAL"]
            pairs += [(x, y) for x in ours for y in ours if x != y and x[1] == y[1]]
        before = -1
        while before != len(self._fixed):
            before = len(self._fixed)
            self._fixed |= {to for to, by in pairs if to and (by is None or by in self._fixed)}
            for alias, table in self._tables.items():
                if any({(alias, c) for c in key} <= self._fixed for key in _keys(table)):
                    self._fixed |= {(alias, c) for c in self._columns[alias]}

    def wrong(self) -> str:
        """A column that is not fixed, or ""."""
        having, order = (self._select.args.get(k) for k in ("having", "order"))
        for part in (*self._select.expressions, having, order):
            for column in self._free(part.unalias(), part in (having, order)) if part is not None else ():
                return column
        return ""

    def _free(self, node: exp.Expression, later: bool) -> Iterator[str]:
        if node.sql().lower() in self._texts or isinstance(node, exp.Subquery | exp.Select | exp.Exists) or (
            isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)):
            return
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and node.is_star):
            wanted = [node.table.lower()] if isinstance(node, exp.Column) else list(self._tables)
            if any((a, c) not in self._fixed for a in wanted for c in self._columns.get(a, ())):
                yield "*"
        elif isinstance(node, exp.Column):
            place = self._place(node)
            is_alias = later and not node.table and node.name.lower() in self._aliases
            if place and place not in self._fixed and not is_alias:
                yield node.sql()
        else:
            for child in node.iter_expressions():
                yield from self._free(child, later)


def _keys(table: exp.Create) -> Iterator[set[str]]:
    """The sets of columns that identify a row."""
    for part in table.this.expressions:
        if isinstance(part, exp.ColumnDef) and any(isinstance(
            k.kind, exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint) for k in part.constraints):
            yield {part.name.lower()}
        for key in part.find_all(exp.PrimaryKey, exp.UniqueColumnConstraint):
            names = {i.name.lower() for i in key.find_all(exp.Identifier)}
            if names:
                yield names
