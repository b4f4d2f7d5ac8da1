"""Decide whether a database of a dialect would accept a query: with the database's parser if available, or with
rules."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType

from qwed_new.engines.sql import mysql, postgres
from qwed_new.engines.sql.reads import words

# Constructs with the dialects that have them. The generic dialect has all.
_DOUBLE_COLON = frozenset({"postgres", "redshift", "snowflake", "duckdb", "clickhouse", "spark"})
_SIMILAR_TO = frozenset({"postgres", "redshift", "duckdb"})
_ILIKE = _DOUBLE_COLON
_LIMIT_WITH_COMMA = frozenset({"mysql", "sqlite", "clickhouse"})
_NO_LIMIT = frozenset({"tsql", "oracle"})
_NO_FETCH = frozenset({"mysql", "sqlite", "bigquery", "spark"})
_DISTINCT_ON = frozenset({"postgres", "duckdb", "clickhouse"})
_FILTER = frozenset({"postgres", "sqlite", "duckdb", "spark", "clickhouse", "trino"})
_NO_FULL_JOIN = frozenset({"mysql"})
_NO_NULLS_FIRST = frozenset({"mysql", "tsql"})
_NO_ARRAY = frozenset({"mysql", "sqlite", "tsql", "oracle"})
_QUALIFY = frozenset({"snowflake", "bigquery", "duckdb", "clickhouse", "redshift"})
_EMPTY_SELECT = frozenset({"postgres"})
_TRAILING_COMMA = frozenset({"bigquery", "duckdb", "snowflake"})

_FUNCTIONS_OF = ("postgres", "mysql", "sqlite", "tsql", "oracle", "bigquery", "snowflake", "duckdb")

_AFTER_COMMA = frozenset({
    TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING, TokenType.LIMIT,
    TokenType.UNION, TokenType.R_PAREN, TokenType.SEMICOLON})  # fmt: skip


# The order of clauses in one query.
_CLAUSES = (
    TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY,
    TokenType.LIMIT)
_RESERVED = frozenset(
    "select from where group order having union join on inner left right and or not by as in is like between case "
    "when then else distinct into".split())  # fmt: skip


def invalid(text: str, statement: exp.Expression, dialect: str | None, tables: Iterable[exp.Create] = ()) -> str:
    """Why a database refuses the query, or "" if no reason is known. Placeholders in text are those of the dialect."""
    return _own_parser(text, dialect, tables) or _tokens(text, dialect) or _order(text, dialect) or _shape(
        statement, dialect)


def refused(text: str, statement: exp.Expression, dialect: str | None, tables: Iterable[exp.Create],
    mariadb: bool = False) -> str:
    """Why a database refuses a query that its grammar accepts, such as one with a function of another database, or ""
    if no reason is known."""
    if dialect == "postgres":
        return postgres.refuses(text, tables, frozenset(_keys(tables)), _known_functions())
    if dialect == "sqlite":
        return _unused_by_sqlite(statement, list(tables))
    if dialect == "mysql":
        return mysql.refuses(text, statement, tables, _known_functions(), mariadb)
    return ""


@cache
def _known_functions() -> frozenset[str]:
    """The functions of any database that are judged by their names."""
    names = {n.lower() for d in _FUNCTIONS_OF for n in sqlglot.Dialect.get_or_raise(d).parser_class.FUNCTIONS}
    return frozenset(names | words()["functions"])


def _keys(tables: Iterable[exp.Create]) -> Iterator[str]:
    """The columns that identify a row of a table, with the table: those of primary keys of one column."""
    for table in tables:
        for part in table.this.expressions:
            column = part.expressions[0] if isinstance(part, exp.PrimaryKey) and len(part.expressions) == 1 else part
            if isinstance(part, exp.PrimaryKey) or (isinstance(part, exp.ColumnDef) and any(
                isinstance(k.kind, exp.PrimaryKeyColumnConstraint) for k in part.constraints)):
                yield f"{table.this.this.name.lower()}.{column.name.lower()}"


def _own_parser(text: str, dialect: str | None, tables: Iterable[exp.Create]) -> str:
    if dialect == "postgres":
        import postgast

        try:
            postgast.fingerprint(text)
        except postgast.PgQueryError as error:
            return str(error)
    if dialect == "sqlite":
        return _sqlite(text, list(tables))
    return ""


def _unused_by_sqlite(statement: exp.Expression, tables: list[exp.Create]) -> str:
    """Why SQLite refuses a part of the query that it does not look at: a window that no function uses, and MATCH on a
    table without a full-text index, which fails when it is run."""
    for query in statement.find_all(exp.Select):
        windows = query.args.get("windows") or ()
        for window in windows:
            base = window.args.get("alias")
            if base is not None and base.name.lower() not in {w.name.lower() for w in windows if w is not window}:
                return f"there is no window {base.name}"
        if windows and query is statement and tables:
            used = query.copy().select(*(f"count(*) OVER {w.name}" for w in windows), dialect="sqlite")
            if reason := _sqlite(used.sql(dialect="sqlite"), tables):
                return reason
    if tables and statement.find(exp.Match) and not any(t.find(exp.VirtualProperty) for t in tables):
        return "MATCH is for tables with a full-text index; write LIKE or GLOB"
    return ""


# Functions that SQLite has if it was built with them.
_OPTIONAL = re.compile(
    r"no such function: (?:a?(?:cos|sin|tan)h?|atan2|ceil|ceiling|degrees|exp|floor|ln|log|log2|log10|mod|pi|pow|power"
    r"|radians|sign|sqrt|trunc"
    r"|json\w*|soundex|concat|concat_ws|string_agg|format|unixepoch|octet_length|iif|unhex|timediff)$",
    re.I,
)
_UNKNOWN_NAMES = re.compile(
    r"no such (?:table|column)|unknown database|no such collation|no such window|no such module")


def _sqlite(text: str, tables: list[exp.Create]) -> str:
    """Return the error of SQLite when it prepares the query. Without tables, unknown names are not an error."""
    db = sqlite3.connect(":memory:")
    try:
        try:
            for table in tables:
                db.execute(table.sql(dialect="sqlite"))
        except sqlite3.Error:
            tables = []
        db.execute(f"EXPLAIN {text}")
    except sqlite3.ProgrammingError:
        return ""  # it was prepared, and its parameters have no values
    except sqlite3.Error as error:
        message = str(error)
        if _OPTIONAL.match(message) or (not tables and _UNKNOWN_NAMES.match(message)) or message.startswith(
            "unknown database"):
            return ""
        return message
    finally:
        db.close()
    return ""


def _order(text: str, dialect: str | None) -> str:
    """Why the clauses of the query are out of order, which sqlglot accepts."""
    reached = [-1]
    previous = None
    for token in sqlglot.tokenize(text, read=dialect):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            reached.append(-1)
        elif kind == TokenType.R_PAREN and len(reached) > 1:
            reached.pop()
        elif kind in (TokenType.SELECT, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.WITH):
            reached[-1] = 0
        elif kind in _CLAUSES and reached[-1] >= 0:
            # IS DISTINCT FROM
            is_distinct = kind == TokenType.FROM and previous is not None and previous.token_type == TokenType.DISTINCT
            if _CLAUSES.index(kind) < reached[-1] and not is_distinct:
                return f"{token.text.upper()} comes too late"
            reached[-1] = max(reached[-1], _CLAUSES.index(kind))
        if kind == TokenType.COMMA and previous and previous.token_type in (
            *_CLAUSES, TokenType.COMMA, TokenType.L_PAREN, TokenType.DISTINCT):
            return f"a comma behind {previous.text}"
        previous = token
    return ""


def _tokens(text: str, dialect: str | None) -> str:
    tokens = sqlglot.tokenize(text, read=dialect)
    if any(t.token_type == TokenType.FETCH for t in tokens) and not any(
        t.text.upper() in ("ONLY", "TIES") for t in tokens):
        return "FETCH without ONLY"
    for i, token in enumerate(tokens):
        following = tokens[i + 1].token_type if i + 1 < len(tokens) else TokenType.SEMICOLON
        if token.token_type == TokenType.COMMA and following in _AFTER_COMMA and dialect not in _TRAILING_COMMA:
            return f"a comma before {tokens[i + 1].text if i + 1 < len(tokens) else 'the end'}"
        if token.token_type == TokenType.ON and following in (TokenType.SEMICOLON, TokenType.R_PAREN, TokenType.WHERE):
            return "ON without a condition"
        if dialect is None:
            continue
        if token.token_type == TokenType.DCOLON and dialect not in _DOUBLE_COLON:
            return f":: is not a conversion in {dialect}; write CAST(… AS …)"
        if token.token_type == TokenType.FETCH and following in (TokenType.FIRST, TokenType.NEXT) and (
            dialect in _NO_FETCH):
            return f"{dialect} has no FETCH; write LIMIT"
        if token.token_type == TokenType.LIMIT and dialect in _NO_LIMIT:
            return f"{dialect} has no LIMIT"
        if token.token_type == TokenType.LIMIT and i + 2 < len(tokens) and tokens[i + 2].token_type == TokenType.COMMA:
            if dialect not in _LIMIT_WITH_COMMA:
                return f"{dialect} has no LIMIT with two numbers; write LIMIT … OFFSET …"
        if token.text.upper() == "NULLS" and following == TokenType.FIRST and dialect in _NO_NULLS_FIRST:
            return f"{dialect} has no NULLS FIRST"
    return ""


def _shape(statement: exp.Expression, dialect: str | None) -> str:
    for node in statement.walk():
        if isinstance(node, exp.SetOperation):
            left, right = _width(node.left), _width(node.right)
            if left and right and left != right:
                return f"{node.key.upper()} of queries with {left} and {right} columns"
        if isinstance(node, exp.Identifier) and not node.quoted and node.name.lower() in _RESERVED:
            return f"{node.name} is a keyword, not a name"
        if isinstance(node, exp.In) and not node.expressions and not any(
            node.args.get(k) for k in ("query", "unnest", "field")) and dialect != "sqlite":
            return "IN without values"
        if isinstance(node, exp.Select) and (twice := _twice(node)):
            return f"two tables are called {twice}"
        if isinstance(node, exp.Select) and not node.expressions and dialect not in _EMPTY_SELECT:
            return "SELECT without columns"
        if isinstance(node, exp.In | exp.EQ | exp.NEQ | exp.GT | exp.LT | exp.GTE | exp.LTE) and (
            reason := _operand(node)):
            return reason
        if isinstance(node, exp.Where) and any(
            a.find_ancestor(exp.Where, exp.Select) is node for a in node.find_all(exp.AggFunc)):
            return "an aggregate function in WHERE; write HAVING"
        if isinstance(node, exp.Select) and (reason := _misplaced(node)):
            return reason
        if isinstance(
            node, exp.Values) and len({len(t.expressions) for t in node.expressions if isinstance(t, exp.Tuple)}) > 1:
            return "VALUES has rows of different widths"
        if isinstance(node, exp.Insert) and (reason := _insert(node)):
            return reason
        if dialect is None:
            continue
        if isinstance(node, exp.ILike) and dialect not in _ILIKE:
            return f"{dialect} has no ILIKE"
        if isinstance(node, exp.SimilarTo) and dialect not in _SIMILAR_TO:
            return f"{dialect} has no SIMILAR TO"
        if dialect == "mysql" and isinstance(node, exp.Query):
            if node.args.get("offset") and not node.args.get("limit"):
                return "mysql has no OFFSET without LIMIT"
        if isinstance(node, exp.Distinct) and node.args.get("on") and dialect not in _DISTINCT_ON:
            return f"{dialect} has no DISTINCT ON"
        if isinstance(node, exp.Filter) and dialect not in _FILTER:
            return f"{dialect} has no FILTER"
        if isinstance(node, exp.Join) and node.side == "FULL" and dialect in _NO_FULL_JOIN:
            return f"{dialect} has no FULL JOIN"
        if isinstance(node, exp.Array) and dialect in _NO_ARRAY:
            return f"{dialect} has no arrays"
        if isinstance(node, exp.Qualify) and dialect not in _QUALIFY:
            return f"{dialect} has no QUALIFY"
    return ""


def _misplaced(query: exp.Select) -> str:
    """Return why a function of groups or windows is in a wrong clause, or names a window that is not defined."""
    for clause, kinds in (("where", exp.Window), ("group", (exp.Window, exp.AggFunc)), ("having", exp.Window)):
        part = query.args.get(clause)
        if part is not None and any(n.find_ancestor(exp.Select) is query for n in part.find_all(kinds)):
            return f"a function of groups or windows in {clause.upper()}"
    windows = {w.name.lower() for w in query.args.get("windows") or ()}
    for window in query.find_all(exp.Window):
        name = window.args.get("alias")
        if isinstance(name, exp.Identifier) and window.find_ancestor(exp.Select) is query and (
            name.name.lower() not in windows) and window.arg_key != "windows":
            return f"there is no window {name.name}"
    return ""


def _width(query: exp.Expression | None) -> int:
    """How many columns a query has; 0 if that is not known."""
    if isinstance(query, exp.Subquery):
        return _width(query.this)
    if isinstance(query, exp.SetOperation):
        return _width(query.left)
    if isinstance(query, exp.Values) and query.expressions and isinstance(query.expressions[0], exp.Tuple):
        return len(query.expressions[0].expressions)
    if isinstance(query, exp.Select) and not any(e.is_star for e in query.expressions):
        return len(query.expressions)
    return 0


def _twice(query: exp.Select) -> str:
    """A name that two tables of a query have."""
    sources = [query.args.get("from_") or query.args.get("from"), *(query.args.get("joins") or ())]
    names = [
        s.this.alias_or_name.lower() for s in sources if s is not None and isinstance(s.this, exp.Table)
        and (s.this.alias or not s.this.db)]
    return next((n for n in names if names.count(n) > 1), "")


def _operand(node: exp.Expression) -> str:
    """Why a subquery that is an operand has the wrong number of columns."""
    query = node.args.get("query") if isinstance(node, exp.In) else node.args.get("expression")
    width = _width(query) if isinstance(query, exp.Subquery | exp.Select) else 0
    left = node.this.unnest()
    wanted = len(left.expressions) if isinstance(left, exp.Tuple) else 1
    if width and width != wanted:
        return f"a subquery has {width} columns where {wanted} {'is' if wanted == 1 else 'are'} compared"
    return ""


def _insert(node: exp.Insert) -> str:
    columns = len(node.this.expressions) if isinstance(node.this, exp.Schema) else 0
    width = _width(node.expression)
    return f"INSERT names {columns} columns and has {width} values" if columns and width and columns != width else ""


_PARAMETER = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/"
    r"|(?P<parameter>%\(\w+\)s|%s\b|(?<![:\w\]]):[A-Za-z_]\w*|\?\d*(?![|&\d])|\$\d+|\$[A-Za-z_]\w*(?![\w$]))", re.S
)
_DOLLAR = frozenset({None, "redshift", "snowflake", "duckdb"})
_BEFORE = re.compile(r"(\w+)\s*$")


def with_placeholders(text: str, dialect: str | None) -> str:
    """The query with the placeholders of its dialect instead of those of drivers: %s, %(name)s, ?, :name and $1."""
    numbers: dict[str, int] = {}

    def replaced(match: re.Match[str]) -> str:
        parameter = match["parameter"]
        if parameter is None or (parameter[0] == "$" and parameter[1].isalpha() and dialect != "sqlite"):
            return match[0]
        if not _takes_operand(text[max(0, match.start() - 60) : match.start()]):
            return match[0]
        name = parameter if parameter not in ("?", "%s") else f"{parameter} {match.start()}"
        number = numbers.setdefault(name, len(numbers) + 1)
        if dialect == "postgres":
            return parameter if parameter.startswith("$") else f"${number}"
        return parameter if parameter[0] == ":" or (parameter[0] == "$" and dialect in _DOLLAR) else "?"

    return _PARAMETER.sub(replaced, text)


def _takes_operand(before: str) -> bool:
    """Whether an operand can follow, so that % and ? are not operators."""
    before = before.rstrip()
    if word := _BEFORE.search(before):
        known = words()
        return any(word[1].lower() in known[s] for s in ("introducers", "parentheses", "types")) or word[1].lower() in (
            "by", "set")
    return not before.endswith((")", "]", "'", '"', "`"))


_ARTICLES = frozenset(
    "the an my your our their his her its this that these those some every each me us you it them everything anything "
    "something best please many few several most none nothing everyone someone anyone nobody here there "
    "scratch".split())
_SYMBOLS = re.compile(r"[^A-Za-z\s.!?]")


def reads_as_english(text: str, statement: exp.Expression) -> bool:
    """Whether a query without a schema may be a sentence: articles are names, or it has nothing but words and is
    written like a sentence."""
    for name in statement.find_all(exp.Identifier):
        if not name.quoted and name.name.lower() in _ARTICLES:
            return True
        aliased = isinstance(name.parent, exp.Column) and isinstance(name.parent.parent, exp.Alias)
        if aliased and not name.quoted and name.name.lower() in ("a", "one", "any", "no") and not re.search(
            r"\bas\b", text, re.I):
            return True
    stripped = text.strip()
    where = statement.args.get("where")
    if where and isinstance(where.this, exp.Column) and not _SYMBOLS.search(stripped) and stripped.islower():
        return True  # select winners from applicants where qualified
    return not _SYMBOLS.search(stripped) and bool(re.match(r"[A-Z][a-z]+\b", stripped)) and not re.search(
        r"\b(?:From|Where|FROM|WHERE)\b", stripped)
