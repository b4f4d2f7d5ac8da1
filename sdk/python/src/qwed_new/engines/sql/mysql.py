"""What MySQL and MariaDB refuse that sqlglot accepts: functions of other databases or with other numbers of arguments,
types that CAST does not have, nested aggregates, and derived tables without a name. mysql_groups has the columns that
are not grouped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from qwed_new.engines.sql.mysql_groups import ungrouped
from qwed_new.engines.sql.reads import words

_NOT_CAST = frozenset(
    "text bigint smallint tinyint mediumint boolean bool numeric timestamp string blob number longtext bytea".split())
_ONLY_MARIADB = frozenset("int integer varchar".split())
# Functions of MariaDB that MySQL 8 does not have.
_MARIADB = frozenset(
    "nvl nvl2 to_char add_months chr decode_oracle lengthb length_b median percentile_cont percentile_disc json_query "
    "json_exists json_detailed json_compact json_loose json_equals json_normalize json_array_intersect "
    "json_object_filter_keys json_key_value json_object_to_array sformat natural_sort_key crc32c kdf "
    "column_get column_create column_json column_list column_exists column_check column_add column_delete "
    "nextval lastval setval sys_guid trim_oracle".split())


@cache
def functions() -> Mapping[str, range | None]:
    """The functions of MySQL 8 and MariaDB by their names, with the numbers of arguments that they take."""
    lines = Path(__file__).with_name("functions_mysql.txt").read_text("utf-8").splitlines()
    found: dict[str, range | None] = {}
    for word in (w for line in lines if not line.startswith("#") for w in line.split()):
        name, _, numbers = word.partition(":")
        least, _, most = numbers.partition("-")
        found[name] = range(int(least), 1_000 if most == "*" else int(most or least) + 1) if numbers else None
    return found


def refuses(text: str, statement: exp.Expression, tables: Iterable[exp.Create], known: frozenset[str],
    mariadb: bool) -> str:
    """Return why MySQL refuses a query, or ""; known are the functions of any database that are judged."""
    tokens = sqlglot.tokenize(text, read="mysql")
    for name, inside in _calls(tokens):
        if name in known and (name not in functions() or (not mariadb and name in _MARIADB)):
            return f"MySQL has no function {name}"
        if name == "position" and len(inside) > 1:
            return "MySQL writes POSITION(a IN b), or LOCATE(a, b)"
        if reason := _cast(inside, mariadb) if name == "cast" else _arguments(name, inside):
            return reason
    if any(a.text.lower() == "nulls" and b.text.lower() in ("first", "last") for a, b in pairwise(tokens)):
        return "MySQL has no NULLS FIRST and NULLS LAST"
    if any(isinstance(d.parent, exp.Count) and d.expressions[:1] == [exp.Star()] for d in statement.find_all(
        exp.Distinct)):
        return "COUNT(DISTINCT *) names no column"
    for node in statement.find_all(exp.AggFunc):
        within = node.find_ancestor(exp.AggFunc, exp.Select, exp.Window)
        if isinstance(within, exp.AggFunc) and not isinstance(node.parent, exp.Window):
            return f"an aggregate is inside of {within.key}"
    for node in statement.find_all(exp.Any, exp.All):
        if not isinstance(node.this.unnest() if node.this else None, exp.Query):
            return f"{node.key.upper()} takes a subquery in MySQL; write IN (…) for a list"
    for group in statement.find_all(exp.Group):
        if group.args.get("cube") or group.args.get("grouping_sets") or any(
            r.expressions for r in group.args.get("rollup") or () if isinstance(r, exp.Rollup)):
            return "MySQL has no ROLLUP (…), CUBE and GROUPING SETS; write GROUP BY … WITH ROLLUP"
    for derived in statement.find_all(exp.Subquery):
        if isinstance(derived.parent, exp.From | exp.Join) and derived.arg_key == "this" and not derived.alias:
            return "a derived table has no name: write (SELECT …) AS t"
    for values in statement.find_all(exp.Values):
        if isinstance(values.parent, exp.From | exp.Join) and values.alias_column_names:
            return "MySQL has no VALUES with names of columns; write SELECT … UNION ALL SELECT …"
    return "" if mariadb else ungrouped(statement, list(tables))


def _calls(tokens: list[Token]) -> Iterator[tuple[str, list[list[Token]]]]:
    """The words before a parenthesis that are not keywords there, with what is inside, split at commas."""
    keywords = words()["introducers"] | words()["parentheses"] | words()["types"]
    for i, (token, after) in enumerate(pairwise(tokens)):
        if after.token_type != TokenType.L_PAREN or token.token_type in (
            TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER):
            continue
        name = token.text.lower()
        if name == "cast" or name not in keywords:
            yield name, _inside(tokens[i + 2 :])


def _inside(tokens: list[Token]) -> list[list[Token]]:
    """The arguments that begin there, each as its tokens outside of inner parentheses."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0:
            break
        if depth == 0 and token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts != [[]] else []


def _arguments(name: str, parts: list[list[Token]]) -> str:
    allowed = functions().get(name)
    if allowed is None or len(parts) in allowed or any(
        t.token_type in (TokenType.FROM, TokenType.USING, TokenType.DISTINCT, TokenType.FOR) for p in parts for t in p):
        return ""
    return f"the function {name} does not take {len(parts)} arguments in MySQL"


def _cast(parts: list[list[Token]], mariadb: bool) -> str:
    flat = [t for p in parts for t in p]
    named = [after.text.lower() for t, after in pairwise(flat) if t.text.lower() == "as"]
    if named and (named[-1] in _NOT_CAST or (named[-1] in _ONLY_MARIADB and not mariadb)):
        return f"CAST has no type {named[-1].upper()} in MySQL; write SIGNED, CHAR, DECIMAL or DATETIME"
    return ""
