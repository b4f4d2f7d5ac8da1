"""Verdicts on SQL."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlglot import exp

from qwed_new.engines.sql import dialects, reading, reads, schema, tautology
from qwed_new.engines.sql.reading import SQLSyntaxError, Template
from qwed_new.limits import TimeLimit, TooLarge, limited
from qwed_new.verdict import Status, Verdict

ENGINE = "sql"
SECONDS = 10.0

_MUTATIONS = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
_REFUSED = frozenset({"readcsv", "readparquet", "loadfile", "sleep", "pgsleep"})
_SENSITIVE = frozenset(
    "password passwd pwd secret token api_key apikey ssn credit_card card_number cvv private_key password_hash "
    "salt".split()
)


def verify_sql(
    query: str,
    schema_ddl: str | None = None,
    dialect: str | None = "postgresql",
    allowed_tables: Collection[str] | None = None,
    allow_mutations: bool = False,
    seconds: float = SECONDS,
) -> Verdict:
    """Decide whether a query only reads, names what the schema has, and carries no injection.

    BLOCKED is for several statements, mutations (unless allowed; DROP and other definitions always), conditions that
    are always true, comments that hide the rest, functions that are not known to compute only, and tables outside
    allowed_tables. ERROR is for what does not parse or is not in the schema.
    """
    try:
        name = reading.dialect_of(dialect)
    except (LookupError, AttributeError):
        return Verdict(
            Status.UNKNOWN, ENGINE,
            f"the dialect {dialect!r} is not known; these are: {', '.join(d for d in reading.DIALECTS if d)}"
        )
    try:
        mariadb = str(dialect).strip().lower() == "mariadb"
        return limited(seconds, _decide, query, schema_ddl, name, allowed_tables, allow_mutations, mariadb)
    except TimeLimit:
        return Verdict(Status.INCONCLUSIVE, ENGINE, f"not decided within {seconds:g} seconds")
    except TooLarge as error:
        return Verdict(Status.BLOCKED, ENGINE, str(error), issues=[str(error)])
    except Template as error:
        return Verdict(Status.INCONCLUSIVE, ENGINE, str(error), issues=[str(error)])
    except SQLSyntaxError as error:
        return Verdict(Status.ERROR, ENGINE, f"the query does not parse: {error}", issues=[f"does not parse: {error}"])
    except ValueError as error:
        return Verdict(Status.ERROR, ENGINE, str(error), issues=[str(error)])
    except (RecursionError, MemoryError):
        return Verdict(Status.BLOCKED, ENGINE, "the query is nested too deep", issues=["the query is nested too deep"])


def _decide(
    query: str, ddl: str | None, dialect: str | None, allowed: Collection[str] | None, mutations: bool,
    mariadb: bool) -> Verdict:
    text = dialects.with_placeholders(query, dialect) if isinstance(query, str) else query
    statements = reading.parse(text, dialect)
    if not statements:
        return Verdict(Status.ERROR, ENGINE, "the query is empty", issues=["the query is empty"])
    known = schema.read_schema(ddl, dialect) if ddl is not None else {}
    created = schema.creates(ddl, dialect) if ddl is not None else []
    operands = [tautology.operands(s, schema.types(s, known, created), dialect or "") for s in statements]
    issues = [f"always true: {t}" for o in operands for t in o.always]
    issues += [i for s in statements for i in _issues(s, mutations)]
    if len(statements) > 1:
        issues.insert(0, f"{len(statements)} statements where one is wanted")
    if any(reading.hiding(c) for c in reading.comments(query)):
        issues.append("a comment hides a part of the query")
    if not issues and (reason := reads.why_not(query, changes=mutations)):
        issues.append(f"not a read in every database: {reason}")
    named = sorted({t for s in statements for t in schema.tables(s)})
    if allowed is not None:
        permitted = {a.lower() for a in allowed}
        issues += [f"table not allowed: {t}" for t in named if t not in permitted and t.split(".")[-1] not in permitted]
    evidence: dict[str, Any] = {
        "parsed": [s.sql(dialect=dialect)[:2_000] for s in statements],
        "tables": named,
        "dialect": dialect or "generic",
    }
    if issues:
        return Verdict(Status.BLOCKED, ENGINE, "; ".join(issues), {**evidence, "issues": issues}, issues=issues)
    if ddl is not None:
        if not known:
            return Verdict(
                Status.ERROR, ENGINE, "schema_ddl defines no table", evidence, issues=["schema_ddl defines no table"])
        evidence["schema"] = {t: list(c) for t, c in known.items()}
        wrong = [p for s in statements for p in schema.problems(s, known, dialect)]
        if wrong:
            return Verdict(Status.ERROR, ENGINE, "; ".join(wrong), {**evidence, "issues": wrong}, issues=wrong)
    elif dialects.reads_as_english(query, statements[0]):
        message = "the text reads as English as well as SQL; give schema_ddl to decide whether its names exist"
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, evidence, issues=[message])
    if dialect in (None, "postgres", "sqlite", "mysql") and (  # the others read x.y as a field of the column x, too
        wrong := [f"unknown table: {c}" for s in statements for c in schema.unknown_qualifiers(s)]):
        return Verdict(Status.ERROR, ENGINE, "; ".join(wrong), {**evidence, "issues": wrong}, issues=wrong)
    if reason := dialects.invalid(text, statements[0], dialect, created):
        raise SQLSyntaxError(reason)
    if reason := dialects.refused(text, statements[0], dialect, created, mariadb):
        raise ValueError(f"{dialect} refuses the query: {reason}")
    if unclear := [t for o in operands for t in o.unclear]:
        message = (
            f"whether {unclear[0][:200]} holds for every row is not known; write the operand of OR as a comparison of "
            "columns with constants")
        return Verdict(Status.INCONCLUSIVE, ENGINE, message, {**evidence, "unclear": unclear}, issues=[message])
    message = "one statement that reads" + (
        " what the schema has" if ddl is not None else "; no schema was given to hold it against")
    return Verdict(
        Status.VERIFIED, ENGINE, message if not mutations else message.replace("that reads", "of an allowed kind"),
        evidence, issues=[]
    )


def _issues(statement: exp.Expression, mutations: bool) -> list[str]:
    issues: list[str] = []
    if isinstance(statement, _MUTATIONS):
        if not mutations:
            issues.append(f"mutation: {statement.key.upper()}")
        elif isinstance(statement, exp.Update | exp.Delete) and not statement.args.get("where"):
            issues.append(f"{statement.key.upper()} without WHERE")
    elif not isinstance(statement, exp.Query):
        name = str(statement.this) if isinstance(statement, exp.Command) else statement.key
        issues.append(f"not a query: {name.upper()}")
    for node in statement.find_all(*_MUTATIONS):
        if node is not statement and not mutations:
            issues.append(f"mutation inside a query: {node.key.upper()}")
    for node in statement.find_all(exp.Into, exp.Lock):
        issues.append("SELECT INTO" if isinstance(node, exp.Into) else "locks rows")
    issues += [f"function not allowed: {f}" for f in _functions(statement)]
    issues += [f"system table: {t}" for t in sorted(schema.tables(statement)) if schema.is_system(t)]
    for union in statement.find_all(exp.SetOperation):
        columns = {c.name.lower() for c in union.right.find_all(exp.Column)}
        if columns & _SENSITIVE:
            issues.append(f"UNION with {', '.join(sorted(columns & _SENSITIVE))}")
            break
    return list(dict.fromkeys(issues))


def _functions(statement: exp.Expression) -> list[str]:
    refused: list[str] = []
    for node in statement.find_all(exp.Func):
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name != "all" and name not in reads.words()["functions"]:
                refused.append(name)
        elif node.key in _REFUSED:
            refused.append(node.sql_name().lower())
    return list(dict.fromkeys(refused))
