"""Tables and columns of a query, held against the schema that its DDL defines."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from qwed_new.engines.sql.reading import parse

SYSTEM = (
    "information_schema",
    "pg_catalog",
    "sqlite_master",
    "sqlite_schema",
    "mysql",
    "performance_schema",
    "sys",
    "sysobjects",
    "syscolumns",
    "master",
    "dual_tables",
)
_SYSTEM_PREFIXES = ("pg_", "sqlite_", "all_tab", "user_tab", "dba_", "v$")

Schema = dict[str, dict[str, str]]


def read_schema(ddl: str, dialect: str | None) -> Schema:
    """Tables with their columns and types, in lower case."""
    schema: Schema = {}
    for statement in parse(ddl, dialect, "schema_ddl"):
        if not isinstance(statement, exp.Create) or not isinstance(statement.this, exp.Schema):
            continue
        columns = {c.name.lower(): (c.kind.sql() if c.kind else "TEXT") for c in statement.this.expressions if isinstance(c, exp.ColumnDef)}
        schema[statement.this.this.name.lower()] = columns
    return schema


def tables(statement: exp.Expression) -> set[str]:
    """The tables that a statement names, without its own common table expressions; in lower case, with their schema."""
    own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    names = set()
    for table in statement.find_all(exp.Table):
        name = ".".join(p.lower() for p in (table.db, table.name) if p)
        if name and not (name in own and not table.db):
            names.add(name)
    return names


def is_system(table: str) -> bool:
    """Whether a table belongs to the database itself."""
    parts = table.split(".")
    return parts[0] in SYSTEM or parts[-1].startswith(_SYSTEM_PREFIXES) or parts[-1] in SYSTEM


def problems(statement: exp.Expression, schema: Schema, dialect: str | None) -> list[str]:
    """What a statement names that the schema does not have."""
    unknown = [f"unknown table: {t}" for t in sorted(tables(statement)) if t.split(".")[-1] not in schema]
    if unknown:
        return unknown
    if isinstance(statement, exp.Query):
        try:
            folded = statement.transform(
                lambda n: exp.to_identifier(n.name.lower(), quoted=n.quoted) if isinstance(n, exp.Identifier) else n
            )
            qualify(folded, schema=dict(schema), dialect=dialect, quote_identifiers=False, identify=False)
            list(traverse_scope(statement))
        except SqlglotError as error:
            return [f"unknown column: {str(error).splitlines()[0][:160]}"]
        return []
    return _columns_of_mutation(statement, schema)


def _columns_of_mutation(statement: exp.Expression, schema: Schema) -> list[str]:
    known = {c for t in tables(statement) for c in schema.get(t.split(".")[-1], {})}
    named = {c.name.lower() for c in statement.find_all(exp.Column)}
    if isinstance(statement, exp.Insert) and isinstance(statement.this, exp.Schema):
        named |= {i.name.lower() for i in statement.this.expressions}
    return [f"unknown column: {c}" for c in sorted(named - known) if c and c != "*"]
