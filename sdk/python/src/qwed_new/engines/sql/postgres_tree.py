"""The trees of PostgreSQL's grammar, as the messages of postgast, and the names that are visible in a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from qwed_new.engines.sql.postgres_types import Refused, Type

Columns = list[tuple[str, Type]]


def kind_of(node: Any) -> str:
    """The kind of a node, "" for no node."""
    return node.WhichOneof("node") or "" if node.DESCRIPTOR.name == "Node" else ""


def inner(node: Any) -> Any:
    return getattr(node, kind_of(node)) if kind_of(node) else node


def children(message: Any) -> Iterator[Any]:
    for field, value in message.ListFields():
        if field.message_type is not None:
            yield from (value if field.is_repeated else [value])


@cache
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def all_of(message: Any, kind: str, stop: tuple[str, ...] = ()) -> Iterator[Any]:
    """The messages of a kind in a tree, the outer ones first. Nothing is looked for inside of the kinds in stop."""
    stack = [message]
    while stack:
        node = stack.pop()
        name = _snake(node.DESCRIPTOR.name)
        if name == kind:
            yield node
        if name not in stop or node is message:
            stack.extend(reversed(list(children(node))))


def texts(nodes: Any) -> list[str]:
    return [n.string.sval for n in nodes if kind_of(n) == "string"]


def choice(node: Any, field: str) -> str:
    """The name of the value of an enumeration."""
    return node.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(node, field)].name


def literal(node: Any) -> str | None:
    """The text of a literal in quotes."""
    return node.a_const.sval.sval if kind_of(node) == "a_const" and node.a_const.HasField("sval") else None


class Relations(NamedTuple):
    """The tables of a FROM clause by their aliases, with their columns if these are known, and the columns that USING
    merges."""

    tables: dict[str, Columns | None]
    merged: frozenset[str]

    def joined(self, other: Relations, merged: frozenset[str] = frozenset()) -> Relations:
        """Both, with the columns that USING merges."""
        if twice := self.tables.keys() & other.tables.keys():
            raise Refused(f"two tables are called {min(twice)}")
        return Relations({**self.tables, **other.tables}, self.merged | other.merged | merged)

    def star(self) -> Columns | None:
        """All columns, or None if they are not known."""
        if None in self.tables.values():
            return None
        every = [c for columns in self.tables.values() for c in columns or ()]
        first = {name: kind for name, kind in reversed(every) if name in self.merged}
        return [*first.items(), *(c for c in every if c[0] not in self.merged)]


NOTHING = Relations({}, frozenset())
SYSTEM_COLUMNS = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})


class Scope(NamedTuple):
    """What an expression sees: the tables of its query, the queries around it, and the names of WITH."""

    relations: Relations
    outer: Scope | None
    ctes: Mapping[str, Columns | None]
    windows: frozenset[str] = frozenset()

    def find(self, names: list[str]) -> tuple[Scope, str, Type] | None:
        """The scope, the table and the type of a column, or None if that is not known."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._here(names)
            if found:
                return scope, *found
            if found is None:
                return None
            scope = scope.outer
        raise Refused(f"unknown column: {'.'.join(names)}")

    def _here(self, names: list[str]) -> tuple[str, Type] | tuple[()] | None:
        """The table and the type of a column of this query, () if it has none of that name, None if that is not
        known."""
        column, tables = names[-1], self.relations.tables
        if len(names) > 1:
            if names[-2] not in tables:
                return ()
            columns = tables[names[-2]]
            found = [k for n, k in columns or () if n == column]
            if columns is None or column in SYSTEM_COLUMNS:
                return None
            if not found:
                raise Refused(f"unknown column: {'.'.join(names)}")
            return names[-2], found[0]
        places = [(t, k) for t, columns in tables.items() for n, k in columns or () if n == column]
        if None in tables.values() or column in SYSTEM_COLUMNS:
            return None if not places or len(tables) > 1 else places[0]
        if len(places) > 1 and column not in self.relations.merged:
            raise Refused(f"the column {column} is ambiguous: {' and '.join(t for t, _ in places)} have it")
        if places:
            return places[0]
        return (column, "record") if column in tables else ()


def canonical(node: Any, scope: Scope) -> Any:
    """A value that is equal for expressions that mean the same."""
    if kind_of(node) == "column_ref":
        names = texts(node.column_ref.fields)
        try:
            found = scope.find(names) if len(names) == len(node.column_ref.fields) else None
        except Refused:  # a column of a subquery in the expression
            found = None
        if found:
            return "column", id(found[0].relations.tables), found[1], names[-1]
    message = inner(node)
    return (kind_of(node), message.DESCRIPTOR.name, *(
        (field.name, tuple(_part(v, scope) for v in value) if field.is_repeated else _part(value, scope))
        for field, value in message.ListFields() if not field.name.endswith(("location", "list_start", "list_end"))))


def _part(value: Any, scope: Scope) -> Any:
    return canonical(value, scope) if hasattr(value, "DESCRIPTOR") else value
