package sqltext_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/sqltext"
)

func TestClassify(t *testing.T) {
	for want, texts := range map[sqltext.Effect][]string{
		sqltext.Read: {
			"SELECT * FROM users",
			"  select 1 ; ",
			"(SELECT 1) UNION (SELECT 2)",
			"WITH x AS (SELECT 1) SELECT * FROM x",
			"SELECT 'DROP TABLE users; DELETE FROM x'",
			`SELECT "update" FROM t -- delete from t`,
			"SELECT /* drop table t */ 1",
			"SELECT replace(name, 'a', 'b') FROM t",
			"SELECT t.update, t.set FROM t",
			"SELECT E'it\\'s' FROM t",
			"SELECT 'C:\\' FROM t",
			"EXPLAIN DELETE FROM t",
			"SHOW TABLES", "DESCRIBE users", "VALUES (1), (2)",
			"SELECT pg_typeof(1), created_at, updated_by, dropped FROM t",
		},
		sqltext.Write: {
			"INSERT INTO t VALUES (1)",
			"UPDATE t SET a = 1 WHERE id = 2",
			"delete from t where id = 1",
			"WITH gone AS (DELETE FROM t WHERE id = 1 RETURNING *) SELECT * FROM gone",
			"SELECT * INTO copy FROM t",
			"SELECT * FROM t FOR UPDATE",
			"EXPLAIN ANALYZE UPDATE t SET a = 1 WHERE b = 2",
			"EXPLAIN (ANALYZE, VERBOSE) INSERT INTO t VALUES (1)",
			"SELECT pg_sleep(100)", "select PG_TERMINATE_BACKEND(1)", "SELECT nextval('s')",
			"SET search_path = evil", "PRAGMA writable_schema = 1", "CALL p()", "COPY t TO '/tmp/x'",
			"BEGIN", "GRANT ALL ON t TO eve", "CREATE TABLE t (a int)", "MERGE INTO t USING s ON 1 = 1",
			"SELECT 1; INSERT INTO t VALUES (1)",
			"SELECT 1 INTO OUTFILE '/tmp/x'",
			"ATTACH DATABASE 'x' AS y", "REPLACE INTO t VALUES (1)", "DO SLEEP(5)",
		},
		sqltext.Destroy: {
			"DROP TABLE users", "drop/**/table users", "DROP\n\tDATABASE x", "TRUNCATE users", "truncate table users",
			"ALTER TABLE t DROP COLUMN a", "DELETE FROM users", "UPDATE users SET admin = 1",
			"SELECT 1; DROP TABLE users;--", "SELECT 'a\\'; DROP TABLE users; --'", "SELECT 1 /*! ; DROP TABLE users */",
			"SELECT 1 # '\n; DROP TABLE users -- '", "select /* /* */ 1; drop table t --*/",
		},
		sqltext.Unclear: {"", " ; ;", "SELECT 'open", "/* never closed", `SELECT "a`, "-- only a comment"},
	} {
		for _, text := range texts {
			if got := sqltext.Classify(text); got != want {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
		}
	}
}

func TestDestroys(t *testing.T) {
	for text, want := range map[string]bool{
		"DROP TABLE users;":                     true,
		"I don't drop tables":                   false,
		"x'; DROP TABLE users; --":              true,
		"drop /* a */ schema public":            true,
		"SELECT 1":                              false,
		"Drop me a line when the table is free": false,
		"print('drop table t')":                 false,
		"":                                      false,
	} {
		if got := sqltext.Destroys(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

func FuzzClassifyEnds(f *testing.F) {
	f.Add("SELECT 1 /*! */ $a$ $a$ 'x''y' \"z\" # -- \n")
	f.Fuzz(func(t *testing.T, text string) {
		// Comments and space around a text do not make it milder.
		if sqltext.Classify(text) == sqltext.Destroy && sqltext.Classify("/* a */ "+text) == sqltext.Read {
			t.Errorf("%q", text)
		}
	})
}
