"""Reading SQL within limits: texts that are not passed to the parser, and code that is hidden in comments."""

from __future__ import annotations

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokens import TokenType

from qwed_new.limits import TooLarge, bounded_text

logging.getLogger("sqlglot").addHandler(logging.NullHandler())  # it has nothing to say that a verdict does not

MAX_TEXT = 200_000
MAX_DEPTH = 60
MAX_TOKENS = 20_000

DIALECTS = {
    "": None, "ansi": None, "generic": None, "postgresql": "postgres", "postgres": "postgres", "sqlite": "sqlite",
    "mysql": "mysql", "mariadb": "mysql",
    "mssql": "tsql", "sqlserver": "tsql", "tsql": "tsql", "oracle": "oracle", "bigquery": "bigquery",
    "snowflake": "snowflake", "duckdb": "duckdb",
    "redshift": "redshift", "spark": "spark", "clickhouse": "clickhouse", "trino": "trino",
}  # fmt: skip

_WORD = re.compile(r"\w+")


_TEMPLATE = re.compile(r"\{\{|\}\}|\$\{|<%|\{%|#\{|\{\w*\}")


class Template(ValueError):
    """The text is a template and not yet a query."""


class SQLSyntaxError(ValueError):
    """The text is not SQL of the dialect."""


def _absolute_value(parser: Postgres.Parser) -> exp.Expression | None:
    """Parse what follows @, or the parameter that begins with $."""
    if parser._prev.text == "@":
        return parser.expression(exp.Abs(this=parser._parse_unary()))
    parser._retreat(parser._index - 1)
    return parser._parse_type()


class _PostgreSQL(Postgres):
    """sqlglot reads the operator @ of PostgreSQL, the absolute value, as a parameter."""

    class Parser(Postgres.Parser):
        UNARY_PARSERS = {**Postgres.Parser.UNARY_PARSERS, TokenType.PARAMETER: _absolute_value}  # noqa: RUF012


def dialect_of(name: str | None) -> str | None:
    """The parser's name of a dialect; LookupError for one that is not known."""
    return DIALECTS[(name or "").strip().lower()]


def parse(text: str, dialect: str | None, what: str = "query") -> list[exp.Expression]:
    """The statements of a text."""
    text = bounded_text(text, what, MAX_TEXT)
    if template := _TEMPLATE.search(text):
        raise Template(
            f"{what} is a template: what stands for {template[0]!r} is not known; bind values as parameters")
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise TooLarge(f"{what} is nested more than {MAX_DEPTH} deep")
    if len(_WORD.findall(text)) > MAX_TOKENS:
        raise TooLarge(f"{what} has more than {MAX_TOKENS} words")
    for word in ("not", "case", "-", "~"):
        if len(re.findall(rf"(?:{re.escape(word)}\s*){{{MAX_DEPTH}}}", text, re.I)):
            raise TooLarge(f"{what} repeats {word!r} more than {MAX_DEPTH} times")
    try:
        statements = [
            s for s in sqlglot.parse(text, read=_PostgreSQL if dialect == "postgres" else dialect,
            error_level=sqlglot.ErrorLevel.RAISE) if s is not None]
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error).splitlines()[0][:160]
        raise SQLSyntaxError(reason) from None
    for statement in statements:
        if isinstance(statement, exp.Alias | exp.Condition) and not isinstance(statement, exp.Query | exp.Command):
            raise SQLSyntaxError(f"{statement.sql()[:60]!r} is not a statement")
        for written in list(statement.find_all(exp.HexString)):
            if re.search(r"[^0-9a-fA-F]", str(written.this)):
                raise SQLSyntaxError(f"{str(written.this)[:40]!r} is not hexadecimal")
            if not written.this:  # sqlglot cannot write an empty one
                written.replace(exp.Literal.string(""))
    return statements


def comments(text: str) -> list[str]:
    """The comments of a text, outside of literals and quoted names."""
    found: list[str] = []
    i = 0
    while i < len(text):
        c = text[i]
        if c in "'\"`":
            end = i + 1
            while end < len(text) and text[end] != c:
                end += 2 if text[end] == "\\" and c != '"' and end + 1 < len(text) and text[end + 1] == c else 1
            i = end + 1
        elif text.startswith("--", i) or (c == "#" and not text.startswith(("#>", "#-"), i)):
            end = text.find("\n", i)
            found.append(text[i : end if end >= 0 else len(text)])
            i = end + 1 if end >= 0 else len(text)
        elif text.startswith("/*", i):
            end = text.find("*/", i + 2)
            found.append(text[i : end + 2 if end >= 0 else len(text)])
            i = end + 2 if end >= 0 else len(text)
        else:
            i += 1
    return found


def hiding(comment: str) -> bool:
    """Whether a comment seems to cut off the rest of a query, or is executed by some server."""
    if comment.startswith("/*!") or (comment.startswith("/*+") and "(" not in comment):
        return True
    body = comment.lstrip("-#/* ")
    return (
        "'" in body
        or '"' in body
        or bool(re.search(r"\b(?:and|or|where|union|select|password|limit|order by)\b[^.]*[=<>(']", body, re.I))
        or not body.strip(" */;")
    )
