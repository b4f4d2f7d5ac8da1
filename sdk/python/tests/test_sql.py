"""The SQL engine and SQLGuard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qwed_new.engines.sql import verify_sql
from qwed_new.engines.sql.reads import why_not
from qwed_new.guards.sql_guard import SQLGuard

DDL = (
    "CREATE TABLE users (id INT, name TEXT); CREATE TABLE orders (id INT PRIMARY KEY, user_id INT, "
    "total DECIMAL(10,2), FOREIGN KEY (user_id) REFERENCES users(id))")


@pytest.mark.row("P-011")
@pytest.mark.parametrize("dialect", ["postgresql", "sqlite", "mysql"])
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("SELECT * FROM users WHERE id = 1", "VERIFIED"), ("SELECT nme FROM users", "ERROR"),
        ("SELECT * FROM user_list", "ERROR"),
        ("SELECT u.name, o.total FROM users u JOIN orders o ON u.id = o.user_id WHERE o.total > 5", "VERIFIED"),
        ("SELECT u.total FROM users u", "ERROR"), ("WITH t AS (SELECT id FROM users) SELECT * FROM t", "VERIFIED"),
        ("SELECT count(*) FROM users GROUP BY name HAVING count(*) > 1", "VERIFIED"),
        ("select ID from users", "VERIFIED"),
        ("SELECT * FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)", "VERIFIED"),
        ("SELECT * FROM users WHERE EXISTS (SELECT 1 FROM orders o WHERE o.buyer = users.id)", "ERROR"),
        ("DELETE FROM users", "BLOCKED"), ("SELEC * FORM users", "ERROR"), ("", "ERROR"),
        ("SELECT * FROM users WHERE id = ?", "VERIFIED"),
    ],
)  # fmt: skip
def test_queries_against_a_schema(query: str, dialect: str, status: str) -> None:
    verdict = verify_sql(query=query, schema_ddl=DDL, dialect=dialect)
    assert verdict.status == status, verdict


ATTACKS = [
    "SELECT * FROM users WHERE id = '1' OR '1'='1'", "SELECT * FROM users WHERE id=1 OR 1=1",
    "SELECT * FROM u WHERE a=1 OR 'a'='a' -- '",
    "SELECT * FROM u WHERE name='admin' --' AND password='x'", "SELECT 1; DROP TABLE users", "DROP TABLE users",
    "SELECT * FROM u WHERE id=id",
    "SELECT * FROM u WHERE x>5 OR x<=5", "SELECT * FROM u WHERE a=1 OR 2>1",
    "SELECT * FROM u WHERE a=1 OR 'x' LIKE '%'", "SELECT * FROM u WHERE a=1 OR NOT 1=2",
    "SELECT * FROM u WHERE a=1 OR 1", "SELECT * FROM u WHERE a=1 OR TRUE", "SELECT * FROM u WHERE a=1 OR 1 IN (1,2)",
    "SELECT * FROM u WHERE a=1 OR 5 BETWEEN 1 AND 9",
    "SELECT * FROM u WHERE a=1 OR length('a')=1", "SELECT * FROM u WHERE a=1 OR (SELECT 1)=1", "SELECT pg_sleep(5)",
    "SELECT load_file('/etc/passwd')",
    "SELECT * FROM u WHERE a=1 UNION SELECT password FROM accounts", "SELECT table_name FROM information_schema.tables",
    "SELECT * FROM u /*!50000 UNION SELECT 1*/",
    "UPDATE u SET a=1 WHERE id=2", "INSERT INTO u VALUES (1)", "TRUNCATE TABLE u", "ALTER TABLE u ADD x INT",
    "GRANT ALL ON u TO x", "SELECT * INTO x FROM y",
    "SELECT * FROM u WHERE a='x' OR ''=''", "WITH d AS (DELETE FROM u RETURNING *) SELECT * FROM d",
    "SELECT benchmark(1000000, 1)", "SELECT * FROM users WHERE id=1 OR 3-2=1",
    "SELECT * FROM sqlite_master", "SELECT * FROM pg_shadow", "CREATE TABLE x (a INT)", "SET a = 1",
    "COPY u TO '/tmp/x'",
]  # fmt: skip


@pytest.mark.row("Q-026", "Q-057", "Q-072")
@pytest.mark.parametrize("query", ATTACKS)
def test_injections_and_changes_do_not_pass(query: str) -> None:
    result = SQLGuard().verify_query(query)
    assert result["verified"] is False and result["message"], query


@pytest.mark.row("Q-072")
@pytest.mark.parametrize(
    "query", [
        "SELECT a FROM t WHERE 1=1 AND b=2", "SELECT * FROM t WHERE a = 1 OR a = 2",
        "-- all users\nSELECT id FROM users", "SELECT id FROM t WHERE name = 'O''Brien -- x'",
                                   "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END FROM t",
                                   "SELECT * FROM t WHERE a LIKE '%x%' OR b = $1",
                                   "SELECT max(a), lower(b) FROM t GROUP BY b"])  # fmt: skip
def test_ordinary_queries_pass(query: str) -> None:
    assert SQLGuard().verify_query(query)["verified"], query


@pytest.mark.row("Q-072")
def test_tables_outside_the_allowed_ones_do_not_pass() -> None:
    assert SQLGuard().verify_query("SELECT * FROM Users", allowed_tables=["users"])["verified"]
    assert not SQLGuard(allowed_tables=["users"]).verify_query("SELECT * FROM users JOIN secrets ON 1=2")["verified"]
    assert not SQLGuard(allowed_tables=[]).verify_query("SELECT * FROM users")["verified"]


def test_mutations_pass_only_where_a_caller_allows_them() -> None:
    assert verify_sql("UPDATE users SET name = 'x' WHERE id = 1", DDL, allow_mutations=True).verified
    for query in (
        "UPDATE users SET name = 'x'", "DELETE FROM users WHERE 1=1", "DROP TABLE users",
        "UPDATE users SET nme = 'x' WHERE id = 1"):
        assert not verify_sql(query, DDL, allow_mutations=True).verified


def test_huge_queries_end() -> None:
    for query in (
        "SELECT " + "(" * 10_000 + "1" + ")" * 10_000, "SELECT 1" + " OR 1=1" * 150_000, "SELECT " + "-" * 50_000 + "1",
        "SELECT " + "NOT " * 5_000 + "1", "SELECT '" + "x" * 1_000_000):
        assert not verify_sql(query).verified
    assert verify_sql("SELECT 1").verified


@pytest.mark.parametrize("dialect", ["klingon", 7])
def test_unknown_dialects_are_said(dialect: object) -> None:
    assert verify_sql("SELECT 1", dialect=dialect).status == "UNKNOWN"  # type: ignore[arg-type]


@pytest.mark.row("Q-026", "Q-072")
@pytest.mark.parametrize(
    "operand",
    [
        "id IS NOT NULL OR id IS NULL", "COALESCE(1,0)", "CASE WHEN 1=1 THEN TRUE ELSE FALSE END", "abs(-1)=1",
        "ascii('a')=97", "exists(select 1 from users)", "(select count(*) from users)>=0", "id/id=1",
        "date('now')>'2000-01-01'",
        "random()<2", "current_timestamp IS NOT NULL", "id=any(select id from users)", "id IN (SELECT id FROM users)",
        "(1,2)=(1,2)", "pi() > 3", "greatest(1,2)=2", "sign(5)=1", "length(name)>=0", "id%1=0", "id&0=0",
        "1 IN (SELECT 1)",
        "1=ANY(ARRAY[1])", "name ~ '.*'", "name ~ ''", "name SIMILAR TO '%'", "name REGEXP ''",
        "name NOT LIKE 'x' OR name LIKE 'x'", "abs(id)>=0", "1 IS NOT NULL",
    ],
)  # fmt: skip
def test_operands_that_hold_for_every_row_are_blocked(operand: str) -> None:
    verdict = verify_sql(f"SELECT * FROM users WHERE id = 1 OR {operand}", DDL)
    assert verdict.status == "BLOCKED" and "always true" in verdict.message, verdict


@pytest.mark.row("P-011")
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("SELECT * FROM users WHERE id = {{id}}", "INCONCLUSIVE"),
        ("SELECT * FROM users WHERE id = '${id}'", "INCONCLUSIVE"), ('SELECT "ID" FROM users', "ERROR"),
        ('SELECT "id" FROM users', "VERIFIED"), ("SELECT * FROM other.users", "ERROR"),
        ("SELECT public.users.id FROM public.users", "VERIFIED"), ("SELECT id AS a FROM users WHERE a = 1", "ERROR"),
        ("SELECT id AS a FROM users ORDER BY a", "VERIFIED"), ("SELECT * FROM users WHERE 1", "BLOCKED"),
        ("SELECT * FROM users WHERE 1=0", "VERIFIED"),
        ("SELECT * FROM users WHERE $1 IS NULL OR id = $1", "VERIFIED"),
        ("SELECT * FROM users WHERE name IS NOT NULL OR id = 1", "VERIFIED"),
        ("SELECT * FROM users WHERE name NOT LIKE 'a%' OR id = 1", "VERIFIED"),
        ("SELECT * FROM users WHERE id = 1 OR id IN (SELECT user_id FROM orders)", "VERIFIED"),
        ("SELECT name FROM users GROUP BY name HAVING count(*) > 1 OR max(id) > 5", "VERIFIED"),
        ("SELECT * FROM users WHERE name ~ '^a' OR id = 1", "VERIFIED"),
    ],
)  # fmt: skip
def test_names_and_parameters_as_postgresql_reads_them(query: str, status: str) -> None:
    assert verify_sql(query, DDL).status == status, verify_sql(query, DDL)


TYPED = (
    "CREATE TABLE users (id INT, name TEXT, age INT, active BOOLEAN, score DECIMAL(5,2), born DATE);"
    "CREATE TABLE orders (id INT, user_id INT, total DECIMAL(10,2))"
)
ALWAYS_TRUE = [
    "(id,id)=(id,id)", "name||''=name", "CASE WHEN id > 1 THEN 1 ELSE 1 END=1", "name>=''", "POWER(age,2)>=0",
    "active IN (TRUE,FALSE)",
    "age*age >= 0", "age+1 > age", "name LIKE '%'", "name || 'x' LIKE '%x'", "name LIKE name",
    "coalesce(active, true) IS NOT NULL",
    "active OR NOT active", "active = true OR active = false", "id = id", "id IS NOT DISTINCT FROM id",
    "id BETWEEN id AND id", "id < 5 OR id >= 5",
    "id > 5 OR id < 6", "id <= 2147483647", "length(name) >= 0", "length(name) > -1", "name <> name || 'a'",
    "nullif(id, id) IS NULL",
    "id IS NULL OR id IS NOT NULL", "NOT (id <> id)", "CASE WHEN active THEN 1 WHEN NOT active THEN 1 ELSE 1 END = 1",
    "abs(age) + 1 > 0",
    "name = name || ''", "concat(name, '') = name", "greatest(1,2) = 2", "score - score = 0", "id IN (id, 5)",
    "id NOT IN (1) OR id IN (1)", "1 = 1",
    "'a' = 'a'", "coalesce(id, 1) = coalesce(id, 1)", "upper(name) = upper(name)", "born >= born",
    "name BETWEEN '' AND name", "iif(id>0,1,1)=1",
    "-id = 0 - id", "id * 0 = 0", "(id, name) = (id, name)", "CASE id WHEN 1 THEN 2 ELSE 2 END = 2", "id % 1 = 0",
    "id + 0 = id",
    "name IS NULL OR name LIKE '%'", "EXISTS (SELECT 1)", "(SELECT 1) = 1", "true", "name || name >= name", "not false",
    "id <> id + 1",
    "(id > 3) IS NOT NULL OR id IS NULL", "name ~ '.*'", "name ILIKE '%'",
    "GREATEST(age, 5) >= 5", "LEAST(age, 5) <= 5", "GREATEST(age, score, 3) >= LEAST(age, score, 3)",
    "SQRT(ABS(age)) >= 0", "POSITION('' IN name) = 1", "STRPOS(name, 'a') >= 0", "LEFT(name, 0) = ''",
    "RIGHT(name, 0) = ''", "LENGTH(LEFT(name, 3)) <= 3", "SIGN(age) IN (-1, 0, 1)", "FLOOR(score) <= score",
    "CEILING(score) - FLOOR(score) <= 1", "EXP(age) > 0", "COS(age) BETWEEN -1 AND 1", "name = name COLLATE \"C\"",
    "REPLACE(name, 'a', 'a') = name", "CASE WHEN GREATEST(age, 1) > 0 THEN TRUE ELSE FALSE END",
]  # fmt: skip
SOMETIMES_TRUE = [
    "name LIKE 'a%'", "name >= 'm'", "id > 5", "id IS NOT NULL", "name IS NULL", "active", "NOT active",
    "active = true", "active IN (true)",
    "age*age > 4", "born > '2000-01-01'", "id IN (1,2,3)", "id = $1", "$1 IS NULL", "name = $1", "lower(name) = 'x'",
    "length(name) > 3",
    "CASE WHEN age > 18 THEN 1 ELSE 0 END = 1", "(id, age) = (1, 2)", "id BETWEEN 1 AND 5", "name || 'x' = 'yx'",
    "score > 10.5", "id % 2 = 0",
    "coalesce(name, '') = ''", "coalesce(age, 0) > 5", "id <> 5", "name NOT LIKE '%x%'", "nullif(name, '') IS NOT NULL",
    "born BETWEEN '2000-01-01' AND '2001-01-01'", "id = age", "age > id", "name = ''", "active IS TRUE",
    "active IS NOT TRUE",
    "id IS DISTINCT FROM age", "abs(age) > 0", "POWER(age,2) > 9",
    "EXISTS (SELECT 1 FROM orders o WHERE o.user_id = users.id)", "id < 2147483647",
    "age + 1 > id",
    "GREATEST(age, 5) > 5", "LEAST(age, id) > 10", "SQRT(score) > 2", "POSITION('a' IN name) = 1",
    "LEFT(name, 1) = 'A'", "RIGHT(name, 3) = 'son'", "SIGN(score) = 1", "FLOOR(score) = 3", "FLOOR(score) = score",
    "EXP(score) > 2", "SIN(score) > 0.5", "REPLACE(name, 'a', 'b') = 'b'", "LEFT(name, 2) = RIGHT(name, 2)",
]  # fmt: skip


# Issue 26: an attacker writes a condition that holds for every row in a shape that no list has.
@pytest.mark.parametrize("condition", ALWAYS_TRUE)
def test_conditions_that_hold_for_every_row_are_blocked(condition: str) -> None:
    for query in (f"SELECT * FROM users WHERE id = 1 OR {condition}", f"SELECT * FROM users WHERE {condition}"):
        verdict = verify_sql(query, TYPED)
        assert verdict.status == "BLOCKED" and "always true" in verdict.message, (query, verdict)


@pytest.mark.parametrize("ddl", [TYPED, None])
@pytest.mark.parametrize("condition", SOMETIMES_TRUE)
def test_conditions_that_some_rows_fail_pass(condition: str, ddl: str | None) -> None:
    for query in (f"SELECT * FROM users WHERE id = 1 OR {condition}", f"SELECT * FROM users WHERE {condition}"):
        assert verify_sql(query, ddl).verified, (query, verify_sql(query, ddl))


@pytest.mark.parametrize(
    ("condition", "dialect"),
    [("@@version", "mysql"), ("@@version", "mssql"), ("name GLOB '*'", "sqlite"), ("name REGEXP ''", "mysql"),
        ("IF(age > 1, 2, 3)", "mysql"), ("id DIV 1 = id", "mysql"), ("LOCATE('', name) = 1", "mysql"),
        ("instr(name, '') = 1", "sqlite"), ("iif(age > 1, 1, 1)", "sqlite"), ("name = name COLLATE NOCASE", "sqlite"),
        ("active IN (0, 1)", "postgresql"), ("name RLIKE '.*'", "mysql")],
)
def test_conditions_of_dialects_that_hold_for_every_row_are_blocked(condition: str, dialect: str) -> None:
    assert verify_sql(f"SELECT * FROM users WHERE id = 1 OR {condition}", TYPED, dialect).status == "BLOCKED"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT u.name, o.total FROM users u JOIN LATERAL (SELECT total FROM orders WHERE user_id = u.id ORDER BY "
        "total LIMIT 1) o ON true",
        "SELECT u.name, o.total FROM users u LEFT JOIN LATERAL (SELECT total FROM orders WHERE user_id = u.id LIMIT 1) "
        "AS o ON TRUE",
    ],
)
def test_lateral_joins_may_be_on_true(query: str) -> None:
    assert verify_sql(query, TYPED).verified, verify_sql(query, TYPED)


ENGLISH = [
    "select winners from applicants where qualified",
    "Select the best from the menu", "Select your favourite dish from our menu", "select the best from the menu",
    "Select all the apples from the basket",
    "Select a winner from contestants", "With the utmost care select one", "Show me the tables",
    "Select apples from basket", "Please select one from the list",
    "Select one from each group", "Describe the table", "Explain the joke", "Values are important",
    "Select from the menu", "Select wisely", "select my heart",
    "Table manners", "Select anything from this shelf",
]  # fmt: skip
INVALID = {
    "*": [
        "SELECT id FROM users UNION SELECT id, name FROM users", "SELECT name, FROM users", "SELECT FROM WHERE",
        "SELECT name FROM users WHERE",
        "SELECT name FROM users ORDER name", "SELECT name FROM users GROUP", "SELECT name name2 name3 FROM users",
        "SELECT * FROM users WHERE count(*) > 1",
        "SELECT * FROM users WHERE id IN (SELECT id, name FROM users)",
        "SELECT * FROM users WHERE id = (SELECT id, name FROM users)",
        "SELECT id, name FROM users UNION ALL SELECT id FROM orders", "SELECT * FROM users u, orders u",
        "SELECT * FROM users WHERE id = = 1",
        "SELECT * FROM users WHERE id 1", "SELECT (id FROM users", "SELECT * FROM", "SELECT * FROM users users2 users3",
        "SELECT id FROM users LIMIT",
        "SELECT id FROM users WHERE name LIKE", "SELECT id, FROM users", "SELECT id name, FROM users",
        "SELECT ,id FROM users", "SELECT id FROM users,",
        "SELECT id FROM users WHERE id BETWEEN 1", "SELECT CASE WHEN id > 1 THEN 2 FROM users",
        "SELECT count(id FROM users",
        "SELECT id FROM users HAVING WHERE id > 1", "SELECT id FROM users ORDER BY id WHERE id > 1",
        "SELECT id FROM users LIMIT 5 WHERE id > 1",
        "SELECT id FROM users JOIN", "SELECT id AS FROM users", "SELECT id FROM users INNER users",
        "SELECT * * FROM users",
        "SELECT id FROM users WHERE AND id = 1", "SELECT id FROM users WHERE id = 1 AND",
        "SELECT id FROM users WHERE NOT",
    ],
    "postgresql": [
        "SELECT id FROM users LIMIT 5, 10", "SELECT `id` FROM users", "SELECT [id] FROM users",
        "SELECT TOP 5 id FROM users",
        "SELECT IFNULL(id, 1) FROM users LIMIT 1,2", "SELECT id FROM users JOIN orders",
        "SELECT id FROM users WHERE id IN ()",
    ],
    "sqlite": [
        "SELECT id::text FROM users", "SELECT TOP 5 id FROM users", "SELECT DISTINCT ON (id) id FROM users",
        "SELECT id FROM users WHERE name ILIKE 'a'",
    ],
    "mysql": [
        "SELECT id::text FROM users", "SELECT DISTINCT ON (id) id FROM users",
        "SELECT id FROM users WHERE name ILIKE 'a'",
        "SELECT count(*) FILTER (WHERE id > 1) FROM users",
        "SELECT id FROM users u FULL JOIN orders o ON u.id = o.user_id", "SELECT TOP 5 id FROM users",
        "SELECT [id] FROM users", "SELECT id FROM users ORDER BY id NULLS FIRST",
        "SELECT id FROM users FETCH FIRST ROW", "SELECT id FROM users WHERE id IN ()",
    ],
    "mssql": [
        "SELECT id FROM users LIMIT 5", "SELECT id::text FROM users", "SELECT `id` FROM users",
        "SELECT id FROM users ORDER BY id LIMIT 1, 2",
    ],
    "oracle": [
        "SELECT id FROM users LIMIT 5", "SELECT id::text FROM users",
    ],
}  # fmt: skip
VALID = {
    "*": [
        "SELECT * FROM users WHERE id = %s", "SELECT * FROM users WHERE id = %s AND name = %s",
        "SELECT * FROM users WHERE id = %(id)s",
        "SELECT * FROM users WHERE id = :id AND name LIKE :name", "SELECT * FROM users WHERE id IN (?, ?, ?)",
        "SELECT * FROM users WHERE id = $1 OR name = $2",
        "SELECT * FROM users WHERE id=? LIMIT ?", "SELECT * FROM users WHERE id=:id OR :id IS NULL",
        "SELECT * FROM users LIMIT %s OFFSET %s",
        "SELECT id % 2 FROM users",
        "SELECT u.id FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 5 ORDER BY u.id LIMIT 5 OFFSET 2",
        "SELECT name, count(*) FROM users GROUP BY name HAVING count(*) > 1",
        "SELECT id FROM users UNION SELECT user_id FROM orders",
        "SELECT * FROM users WHERE id IN (SELECT user_id FROM orders)",
        "SELECT * FROM users WHERE (id, name) IN (SELECT id, name FROM users)",
        "SELECT CASE WHEN id > 1 THEN 'a' ELSE 'b' END FROM users", "SELECT name FROM users WHERE id BETWEEN 1 AND 5",
        "SELECT coalesce(name, '-') AS n FROM users ORDER BY n",
        "SELECT sum(total) OVER (PARTITION BY user_id) FROM orders",
        "WITH t AS (SELECT id FROM users) SELECT count(*) FROM t",
        "SELECT id FROM users EXCEPT SELECT user_id FROM orders", "SELECT max(id) FROM users",
        "SELECT round(total, 2) FROM orders", "SELECT DISTINCT name FROM users",
        "SELECT * FROM users WHERE name LIKE 'a%' AND id = ?",
    ],
    "postgresql": [
        "SELECT id::text FROM users",
        "SELECT u.id FROM users u JOIN LATERAL (SELECT * FROM orders WHERE user_id = u.id LIMIT 1) o ON true",
        "SELECT DISTINCT ON (name) id FROM users", "SELECT count(*) FILTER (WHERE id > 1) FROM users",
        "SELECT name FROM users WHERE name ILIKE 'a%'",
        "SELECT id FROM users ORDER BY id NULLS FIRST", "SELECT id FROM users FETCH FIRST 5 ROWS ONLY",
        "SELECT array_agg(id) FROM users",
    ],
    "sqlite": [
        "SELECT id FROM users LIMIT 5, 10", "SELECT `id` FROM users", "SELECT [id] FROM users",
        "SELECT strftime('%Y', name) FROM users",
        "SELECT name || 'x' FROM users", "SELECT group_concat(name) FROM users",
        "SELECT count(*) FILTER (WHERE id > 1) FROM users",
    ],
    "mysql": [
        "SELECT id FROM users LIMIT 5, 10", "SELECT `id` FROM users", "SELECT CONCAT(name, 'x') FROM users",
        "SELECT GROUP_CONCAT(name SEPARATOR ',') FROM users", "SELECT IFNULL(name, 'x') FROM users",
        "SELECT DATE_FORMAT(name, '%Y') FROM users",
    ],
    "mssql": [
        "SELECT TOP 5 id FROM users", "SELECT [id] FROM [users]", "SELECT id FROM users WHERE id = @id",
        "SELECT id FROM users ORDER BY id OFFSET 5 ROWS FETCH NEXT 5 ROWS ONLY", "SELECT len(name) FROM users",
    ],
    "oracle": [
        "SELECT id FROM users WHERE id = :id", "SELECT id FROM users FETCH FIRST 5 ROWS ONLY",
        "SELECT nvl(name, 'x') FROM users",
    ],
}  # fmt: skip


def _by_dialect(queries: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(q, d) for name,
        qs in queries.items() for q in qs for d in (["postgresql", "sqlite", "mysql"] if name == "*" else [name])]


# Issue 26: a sentence that happens to follow the grammar of SQL is not a query.
@pytest.mark.parametrize("dialect", [None, "postgresql", "sqlite", "mysql"])
@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_not_verified(text: str, dialect: str | None) -> None:
    assert not verify_sql(text, None, dialect).verified


# Issue 26: a statement that the database would refuse is not VERIFIED, with a schema and without.
@pytest.mark.parametrize(("query", "dialect"), _by_dialect(INVALID))
def test_invalid_sql_is_not_verified(query: str, dialect: str) -> None:
    for ddl in (TYPED, None):
        assert not verify_sql(query, ddl, dialect).verified, ddl


# Issue 26: placeholders of drivers and the constructs of each dialect pass.
@pytest.mark.parametrize(("query", "dialect"), _by_dialect(VALID))
def test_valid_sql_is_verified(query: str, dialect: str) -> None:
    for ddl in (TYPED, None):
        assert verify_sql(query, ddl, dialect).verified, verify_sql(query, ddl, dialect)


# Issue 24: the corpus of the judge in Go.
def test_the_judge_agrees_with_the_corpus() -> None:
    corpus = Path(__file__).parents[3] / "internal" / "sqltext" / "testdata" / "corpus.jsonl"
    entries = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    assert len(entries) > 200
    for entry in entries:
        assert (why_not(entry["sql"]) == "") == (entry["effect"] == "read"), entry
        assert not verify_sql(entry["sql"]).verified or entry["effect"] == "read", entry


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql"])
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("SELECT T.f FROM U", "ERROR"), ("SELECT U.f FROM U JOIN V ON U.id = W.id", "ERROR"),
        ("SELECT a.f FROM U a WHERE U.f > 3", "ERROR"), ("SELECT T.f FROM t", "VERIFIED"),
        ("SELECT s.T.f FROM s.T", "VERIFIED"), ("SELECT x.f FROM (SELECT f FROM U) AS x", "VERIFIED"),
        ("WITH c AS (SELECT f FROM U) SELECT c.f FROM c", "VERIFIED"),
        ("SELECT f FROM U WHERE EXISTS (SELECT 1 FROM V WHERE V.id = U.id)", "VERIFIED"),
    ],
)  # fmt: skip
def test_qualifiers_without_a_schema(query: str, status: str, dialect: str) -> None:
    """Issue 26: a column of a table that the statement does not read is an error of every database."""
    assert verify_sql(query, dialect=dialect).status == status
