"""Tables and columns of a query, held against the schema that its DDL defines."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope

from qwed_new.engines.sql.reading import parse
from qwed_new.engines.sql.sorts import REQUIRED, common_type

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


def creates(ddl: str, dialect: str | None) -> list[exp.Create]:
    """The statements of the DDL that define a table with its columns."""
    return [s for s in parse(ddl, dialect, "schema_ddl") if isinstance(s, exp.Create)
        and isinstance(s.this, exp.Schema)]


def read_schema(ddl: str, dialect: str | None) -> Schema:
    """Tables with their columns and types, folded as the dialect folds names; a table outside the default schema with
    its schema."""
    schema: Schema = {}
    for statement in creates(ddl, dialect):
        columns = {
            _folded(c.this, dialect): (c.kind.sql() if c.kind else "TEXT")
            for c in statement.this.expressions
            if isinstance(c, exp.ColumnDef)
        }
        table = statement.this.this
        schema[".".join(p for p in (_schema_of(table), table.name.lower()) if p)] = columns
    return schema


def types(statement: exp.Expression, schema: Schema, tables: Iterable[exp.Create] = ()) -> dict[str, str]:
    """The types of columns of the tables that a statement names, by their names in lower case, alone and behind their
    table or its alias; "unknown" if two of these tables disagree about a name. NOT NULL is behind a type if the
    definition of the table excludes NULL."""
    known: dict[str, str] = {}
    required = {(t.this.this.name.lower(), c) for t in tables for c in _required(t)}
    for named in statement.find_all(exp.Table):
        table = named.name.lower()
        for column, sql in next((c for t, c in schema.items() if t.split(".")[-1] == table), {}).items():
            name = column.lower()
            if (table, name) in required:
                sql += REQUIRED
            known[f"{table}.{name}"] = known[f"{named.alias_or_name.lower()}.{name}"] = sql
            known[name] = common_type(known.get(name, sql), sql)
    return known


def _required(table: exp.Create) -> set[str]:
    """The columns of a definition that are never NULL."""
    constraints = (exp.NotNullColumnConstraint, exp.PrimaryKeyColumnConstraint)
    found = {
        c.name.lower() for c in table.this.expressions if isinstance(c, exp.ColumnDef) and any(
            isinstance(k.kind, constraints) and not k.kind.args.get("allow_null") for k in c.constraints)}
    keys = [k for e in table.this.expressions for k in e.find_all(exp.PrimaryKey)]
    return found | {c.name.lower() for k in keys for c in k.expressions}


def _folded(name: exp.Identifier, dialect: str | None) -> str:
    """A name in lower case; PostgreSQL keeps the capitals of quoted ones."""
    return name.name if dialect == "postgres" and name.quoted else name.name.lower()


_ROW_IDS = frozenset({"rowid", "oid", "_rowid_"})  # columns that each table of SQLite has
_DEFAULT_SCHEMAS = frozenset({"", "public", "main", "dbo"})


def _schema_of(table: exp.Table) -> str:
    """The schema of a table, "" for the default one."""
    return "" if table.db.lower() in _DEFAULT_SCHEMAS else table.db.lower()


def _known_as(table: str) -> str:
    """A name as tables returns it, in the form that read_schema has."""
    schema, _, name = table.rpartition(".")
    return name if schema in _DEFAULT_SCHEMAS else table


def tables(statement: exp.Expression) -> set[str]:
    """The tables that a statement names, without its own common table expressions; in lower case, with their schema."""
    own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    names = set()
    for table in statement.find_all(exp.Table):
        name = ".".join(p.lower() for p in (table.db, table.name) if p)
        if name and not (name in own and not table.db):
            names.add(name)
    return names


# Qualifiers of columns that no clause of a statement introduces.
_IMPLIED = frozenset({"excluded", "new", "old", "inserted", "deleted"})


def unknown_qualifiers(statement: exp.Expression) -> list[str]:
    """Return the qualified columns whose qualifier is neither a table nor an alias of the statement. A table with an
    alias has no other name."""
    known = {a.name.lower() for a in statement.find_all(exp.TableAlias) if a.name} | _IMPLIED
    for table in statement.find_all(exp.Table):
        known.add(table.alias_or_name.lower())
        known |= {f.name.lower() for f in table.find_all(exp.Anonymous)}
    return sorted({c.sql() for c in statement.find_all(exp.Column) if c.table and c.table.lower() not in known})


def is_system(table: str) -> bool:
    """Whether a table belongs to the database itself."""
    parts = table.split(".")
    return parts[0] in SYSTEM or parts[-1].startswith(_SYSTEM_PREFIXES) or parts[-1] in SYSTEM


def problems(statement: exp.Expression, schema: Schema, dialect: str | None) -> list[str]:
    """Return the names in a statement that the schema does not have. Columns in PostgreSQL are judged by postgres."""
    unknown = [f"unknown table: {t}" for t in sorted(tables(statement)) if _known_as(t) not in schema]
    if unknown:
        return unknown
    if isinstance(statement, exp.Query) and dialect == "postgres":
        return []
    if isinstance(statement, exp.Query):
        try:
            folded = statement.transform(
                lambda n: exp.to_identifier(_folded(n, dialect), quoted=n.quoted) if isinstance(n, exp.Identifier)
                else n
            )
            known = {t.split(".")[-1]: c for t, c in schema.items()}
            if dialect == "sqlite" and (named := {c.name.lower() for c in folded.find_all(exp.Column)} & _ROW_IDS):
                known = {t: {**dict.fromkeys(named, "INTEGER"), **c} for t, c in known.items()}
            for table in folded.find_all(exp.Table):
                table.set("db", None)  # the schema was held against the known tables above
            for clause in list(folded.find_all(exp.Order, exp.Group)):  # sqlglot fails on positions of subqueries
                if wrong := _wrong_position(clause):
                    return [wrong]
                clause.set("expressions", [e for e in clause.expressions if not _is_position(e)])
                if not clause.expressions and not clause.args.get("rollup") and not clause.args.get("cube"):
                    clause.pop()
            _put_aliases(folded, {c for columns in known.values() for c in columns}, dialect)
            qualify(folded, schema=known, dialect=dialect, quote_identifiers=False, identify=False,
                expand_alias_refs=False)
            list(traverse_scope(statement))
        except SqlglotError as error:
            return [f"unknown column: {str(error).splitlines()[0][:160]}"]
        return []
    return _columns_of_mutation(statement, schema)


def _wrong_position(clause: exp.Expression) -> str:
    """Why ORDER BY or GROUP BY names a column by a number that is too great."""
    query = clause.parent.left if isinstance(clause.parent, exp.SetOperation) else clause.parent
    if not isinstance(query, exp.Select) or any(e.is_star for e in query.expressions):
        return ""
    items = [e.this if isinstance(e, exp.Ordered) else e for e in clause.expressions]
    numbers = [i.this for i in items if isinstance(i, exp.Literal) and not i.is_string]
    width = len(query.expressions)
    return next((f"{clause.key.upper()} BY names the column {n} of {width}" for n in numbers if n.isdigit() and not (
        0 < int(n) <= width)), "")


def _is_position(node: exp.Expression) -> bool:
    inner = node.this if isinstance(node, exp.Ordered) else node
    return isinstance(inner, exp.Literal | exp.Null)


_NO_ALIAS_IN_GROUP = frozenset({"tsql", "oracle"})


def _put_aliases(statement: exp.Expression, columns: set[str], dialect: str | None) -> None:
    """Write in GROUP BY, and in SQLite in WHERE, the expression in place of its alias. A column of that name comes
    first."""
    clauses = () if dialect in _NO_ALIAS_IN_GROUP else ("group", "where") if dialect == "sqlite" else ("group",)
    for select in statement.find_all(exp.Select):
        aliases = {e.alias.lower(): e.this for e in select.expressions if isinstance(e, exp.Alias)}
        for clause in clauses:
            for column in list(select.args[clause].find_all(exp.Column)) if select.args.get(clause) else ():
                if not column.table and column.name.lower() in aliases and column.name.lower() not in columns:
                    column.replace(aliases[column.name.lower()].copy())


def _columns_of_mutation(statement: exp.Expression, schema: Schema) -> list[str]:
    known = {c for t in tables(statement) for c in schema.get(_known_as(t), {})}
    named = {c.name.lower() for c in statement.find_all(exp.Column)}
    if isinstance(statement, exp.Insert) and isinstance(statement.this, exp.Schema):
        named |= {i.name.lower() for i in statement.this.expressions}
    return [f"unknown column: {c}" for c in sorted(named - known) if c and c != "*"]
