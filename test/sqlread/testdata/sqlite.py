"""Executes texts in SQLite: a JSON string a line in, the state of the database a line out."""

import json
import sqlite3
import sys
import time

db = sqlite3.connect(":memory:", isolation_level=None)


def purge_old_rows(*_: object) -> int:
    db.execute("DELETE FROM users")
    return 1


db.executescript("CREATE TABLE users (id INTEGER, name TEXT); CREATE TABLE t (a INTEGER, b TEXT)")
db.create_function("purge_old_rows", -1, purge_old_rows)


def reset() -> None:
    created = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('users', 't')")
    for (name,) in created.fetchall():
        db.execute(f'DROP TABLE "{name}"')
    db.executescript(
        "CREATE TABLE IF NOT EXISTS users (id INTEGER, name TEXT); CREATE TABLE IF NOT EXISTS t (a INTEGER, b TEXT);"
        "DELETE FROM users; DELETE FROM t; INSERT INTO users VALUES (1, 'a'), (2, 'b'); INSERT INTO t VALUES (1, 'a')"
    )


def state() -> str:
    tables = [n for (n,) in db.execute("SELECT sql FROM sqlite_master ORDER BY name")]
    rows = db.execute("SELECT count(*) FROM users").fetchone() if any("users" in n for n in tables) else ()
    attached = [r[1] for r in db.execute("PRAGMA database_list")]
    return json.dumps([tables, rows, attached, db.in_transaction, db.execute("PRAGMA user_version").fetchone()])


for line in sys.stdin:
    text = json.loads(line)
    reset()
    before, ended = state(), time.monotonic() + 1
    db.set_progress_handler(lambda ended=ended: time.monotonic() > ended, 10_000)
    failed = ""
    try:
        db.executescript(text)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        failed = str(error)
    db.set_progress_handler(None, 0)
    if db.in_transaction:
        db.execute("ROLLBACK")
    print(json.dumps({"changed": state() != before, "error": failed}), flush=True)
