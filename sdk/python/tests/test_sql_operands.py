"""Operands of OR that hold for every row, per dialect (issue 26.4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwed_new.engines.sql import verify_sql

LINES = (Path(__file__).parent / "programs" / "sql_operands.txt").read_text().splitlines()
CASES = [tuple(line.split(" ", 2)) for line in LINES if line and not line.startswith("#")]
DDL = (
    "CREATE TABLE users (id INT NOT NULL, name TEXT, age INT, active BOOLEAN, created DATE, score DECIMAL(10,2));"
    "CREATE TABLE orders (id INT PRIMARY KEY, user_id INT, total DECIMAL(10,2))")


@pytest.mark.row("Q-072")
@pytest.mark.parametrize(("kind", "dialect", "operand"), CASES)
def test_operands(kind: str, dialect: str, operand: str) -> None:
    verdict = verify_sql(f"SELECT name FROM users WHERE id = 1 OR {operand}", DDL, dialect)
    assert verdict.status == ("BLOCKED" if kind == "T" else "VERIFIED"), verdict


CONDITIONS = (Path(__file__).parent / "programs" / "sql_conditions.txt").read_text().splitlines()[1:]
# The columns id have two types, of which only one excludes NULL.
TWO_IDS = (
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), age INT, active BOOLEAN, email VARCHAR(80),"
    " created DATE, balance DECIMAL(10,2));"
    "CREATE TABLE orders (id INT, user_id INT, total DECIMAL(8,2), note VARCHAR(90))")


@pytest.mark.row("Q-072")
@pytest.mark.parametrize("dialect", ["mysql", "postgresql", "sqlite"])
@pytest.mark.parametrize("before", ["", "id = 1 OR "])
def test_conditions(dialect: str, before: str) -> None:
    cases = [line.split(" ", 2) for line in CONDITIONS if line.split(" ")[1] == dialect]
    wanted = {"T": "BLOCKED", "F": "VERIFIED"}
    wrong = [c for k, _, c in cases
        if verify_sql(f"SELECT name FROM users WHERE {before}{c}", TWO_IDS, dialect).status != wanted[k]]
    assert len(cases) > 60 and not wrong


@pytest.mark.row("Q-072")
@pytest.mark.parametrize("query", [
    "SELECT name FROM users WHERE id = 1 OR id IS NOT NULL OR id IN (SELECT id FROM orders)",
    "SELECT name FROM users u WHERE u.id = 1 OR u.id IS NOT NULL",
    "SELECT u.name FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 5 OR u.id IS NOT NULL",
    "SELECT name FROM users WHERE id = 1 OR id IS NOT NULL OR EXISTS (SELECT 1 FROM orders a LEFT JOIN orders b ON "
    "a.id = b.id WHERE a.id = 9)",
])  # fmt: skip
def test_a_column_has_the_type_of_its_table(query: str) -> None:
    assert verify_sql(query, TWO_IDS).status == "BLOCKED"
    assert verify_sql(query, TWO_IDS.replace("id INT PRIMARY KEY", "id INT")).verified


def test_a_condition_of_a_subquery_has_the_types_of_the_subquery() -> None:
    query = (
        "SELECT name FROM users WHERE id IN (SELECT o.id FROM orders o LEFT JOIN users u ON u.id = o.user_id "
        "WHERE o.total > 5 OR u.id IS NOT NULL)")
    assert verify_sql(query, TWO_IDS).verified
    assert verify_sql(query.replace("LEFT JOIN", "JOIN"), TWO_IDS).status == "BLOCKED"


VALIDITY = (Path(__file__).parent / "programs" / "sql_validity.txt").read_text().splitlines()[1:]
COLUMNS = (
    "CREATE TABLE users (id INT NOT NULL, name TEXT, age INT, created DATE);"
    "CREATE TABLE orders (id INT PRIMARY KEY, user_id INT, total DECIMAL(10,2))")


@pytest.mark.row("Q-072", "P-011")
@pytest.mark.parametrize(("kind", "dialect", "query"), [line.split(" ", 2) for line in VALIDITY])
def test_validity_by_dialect(kind: str, dialect: str, query: str) -> None:
    assert verify_sql(query, COLUMNS, dialect).verified == (kind == "V")


@pytest.mark.parametrize("side", ["LEFT", "RIGHT", "FULL"])
def test_a_required_column_may_be_missing_behind_an_outer_join(side: str) -> None:
    query = f"SELECT u.name FROM users u {side} JOIN orders o ON o.user_id = u.id WHERE u.age > 5 OR o.id IS NOT NULL"
    assert verify_sql(query, DDL).verified


@pytest.mark.row("Q-072")
@pytest.mark.parametrize(("dialect", "operand"), [
    ("mysql", "degrees(created) >= 0"), ("mysql", "unhex(active) = active"),
    ("postgresql", "quote_ident(name) >= name"),
    ("postgresql", "unistr(name) < 'zzz'"), ("oracle", "trunc(created) = created"), ("mysql", "created >> age"),
])  # fmt: skip
def test_an_operand_that_cannot_be_computed_is_not_approved(dialect: str, operand: str) -> None:
    verdict = verify_sql(f"SELECT name FROM users WHERE id = 1 OR {operand}", DDL, dialect)
    assert verdict.status == "INCONCLUSIVE"
    assert "holds for every row is not known" in verdict.message


def test_a_condition_that_is_no_operand_of_or_may_be_anything() -> None:
    assert verify_sql("SELECT name FROM users WHERE id = 1 AND quote_ident(name) >= name", DDL).verified


def test_mysql_has_no_fetch_first() -> None:
    query = "SELECT name FROM users WHERE id = 1 ORDER BY id FETCH FIRST 1 ROW ONLY"
    assert verify_sql(query, DDL, "mysql").status == "ERROR"
    assert verify_sql(query, DDL, "postgresql").verified


SEMANTICS = (Path(__file__).parent / "programs" / "sql_semantics.txt").read_text().splitlines()[1:]
TYPED = (
    "CREATE TABLE users (id INT NOT NULL, name TEXT, age INT, active BOOLEAN, created DATE, score DECIMAL(10,2),"
    " email VARCHAR(100), ts TIMESTAMP);"
    "CREATE TABLE orders (id INT PRIMARY KEY, user_id INT, total DECIMAL(10,2), status TEXT)")


@pytest.mark.row("Q-072", "P-011")
@pytest.mark.parametrize(("kind", "dialect", "query"), [line.split(" ", 2) for line in SEMANTICS])
def test_what_a_database_refuses_behind_its_grammar(kind: str, dialect: str, query: str) -> None:
    verdict = verify_sql(query, TYPED, dialect)
    assert verdict.verified == (kind == "V"), verdict


@pytest.mark.parametrize(("query", "words"), [
    ("SELECT name + 1 FROM users", "not have the operator + of text and integer"),
    ("SELECT nvl(name, 'x') FROM users", "no function nvl"),
    ("SELECT name, COUNT(*) FROM users", "neither grouped nor in an aggregate"),
    ("SELECT name FROM users WHERE age = 'abc'", "'abc' is not a value of the type integer"),
])  # fmt: skip
def test_the_reason_is_named(query: str, words: str) -> None:
    assert words in verify_sql(query, TYPED).message


GENERATED = (
    "CREATE TABLE users (id INT NOT NULL, name TEXT, age INT, active BOOLEAN, created DATE, score DECIMAL(10,2),"
    " email VARCHAR(100), ts TIMESTAMP);"
    "CREATE TABLE orders (id INT PRIMARY KEY, user_id INT, total DECIMAL(10,2), status TEXT, placed TIMESTAMP, paid "
    "BOOLEAN)")


@pytest.mark.row("P-011")
def test_generated_queries() -> None:
    lines = (Path(__file__).parent / "programs" / "sql_generated.txt").read_text().splitlines()[1:]
    wrong = [line for line in lines if verify_sql(line.split(" ", 2)[2], GENERATED).verified != line.startswith("V")]
    assert not wrong


@pytest.mark.row("Q-072")
def test_operands_that_are_always_true_matter_where_they_choose_rows() -> None:
    for choosing in (
        "SELECT name FROM users WHERE CASE WHEN id = 1 THEN 1=1 ELSE 2=2 END",
        "SELECT u.name FROM users u JOIN orders o ON o.user_id = u.id OR 1=1",
        "SELECT age, count(*) FROM users GROUP BY age HAVING count(*) > 1 OR 1=1",
        "SELECT sum(age) FILTER (WHERE id = 1 OR 1=1) FROM users",
    ):
        assert verify_sql(choosing, DDL).status == "BLOCKED", choosing
    for shown in ("SELECT CASE WHEN 1=1 THEN name END FROM users", "SELECT name FROM users ORDER BY id = 1 OR 1=1"):
        assert verify_sql(shown, DDL).verified, shown
