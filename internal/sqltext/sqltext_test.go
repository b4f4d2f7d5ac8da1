package sqltext_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/sqltext"
)

// judged is a line of testdata/corpus.jsonl, which the tests of sdk/python read too.
type judged struct {
	Effect string `json:"effect"`
	SQL    string `json:"sql"`
}

func corpus(t testing.TB) []judged {
	t.Helper()
	file, err := os.Open("testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []judged
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var j judged
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		all = append(all, j)
	}
	if len(all) < 200 {
		t.Fatalf("the corpus has %d texts only", len(all))
	}
	return all
}

// The corpus contains the attacks of issue 24: texts that one database reads and another one
// executes, and functions that do more than read.
func TestJudge(t *testing.T) {
	for _, j := range corpus(t) {
		got := sqltext.Judge(j.SQL)
		if got.Effect.String() != j.Effect {
			t.Errorf("%q: %s (%s), want %s", j.SQL, got.Effect, got.Reason, j.Effect)
		}
		if (got.Reason == "") != (got.Effect == sqltext.Read) {
			t.Errorf("%q: %s with the reason %q", j.SQL, got.Effect, got.Reason)
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

// Issue 24: SQL is found in arguments that are not declared as SQL, and prose is not
// taken for SQL.
func TestHasEffects(t *testing.T) {
	for _, text := range []string{
		"DELETE FROM users", "delete from users where id = 1", "  Delete\n From \"users\" ;",
		"UPDATE users SET admin = 1 WHERE id = 2",
		"DELETE/**/FROM/**/users", "DELETE -- all\nFROM users", "INSERT INTO t (a, b) VALUES (1, 2)",
		"replace into t values (1)",
		"insert into t select * from u", "DROP TABLE users", "drop table if exists public.users cascade",
		"x'; DROP TABLE users; --",
		"truncate table users", "TRUNCATE users", "ALTER TABLE t DROP COLUMN a", "alter user eve with superuser",
		"CREATE TABLE t (a int)",
		"create table t as select * from users", "create index on t (a)",
		"CREATE OR REPLACE FUNCTION f() RETURNS int AS 'x'", "GRANT ALL ON t TO eve",
		"grant admin to eve;", "revoke select on t from bob", "EXEC xp_cmdshell 'dir'",
		"exec master..xp_cmdshell 'dir'", "CALL purge(1)",
		"COPY users TO PROGRAM 'sh'", "copy (select 1) to '/tmp/x'", "ATTACH DATABASE 'x' AS y",
		"PRAGMA writable_schema = 1", "LOAD DATA INFILE 'x' INTO TABLE t",
		"SET GLOBAL general_log = 1", "DO $$ BEGIN END $$", "SELECT purge_old_rows()", "select purge_old_rows (1)",
		"SELECT cron.schedule('a', 'b', 'c')",
		"SELECT a, purge(b) FROM t", "WITH x AS (DELETE FROM users RETURNING *) SELECT * FROM x",
		"SELECT 1; DELETE FROM users", "SELECT 1 --\r;DROP TABLE users",
		"SELECT 1 /*!'*/;DELETE FROM users --'", "SELECT 1 DELETE FROM users",
		"SELECT 1 /*!50000 ; DELETE FROM users */", "EXPLAIN ANALYZE DELETE FROM users",
		"SELECT * FROM t FOR UPDATE", "SELECT * INTO x FROM y", "select 'a' into outfile '/tmp/x'",
		"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
		"db.execute(\"DELETE FROM users\")", "Here it is:\n```sql\nDROP TABLE users;\n```",
		"BEGIN; DELETE FROM users; COMMIT", "WAITFOR DELAY '0:0:5'",
		"delete users where id = 1", "DELETE t FROM t JOIN u ON t.a = u.a", "SELECT NEXT VALUE FOR s",
		"SELECT pg_sleep(10)", "lock table users in exclusive mode",
		"DELETE FROM\"users\"", "DELETE FROM`users`", "delete from[users]", "DELETE FROM`a`.`b`WHERE 1=1",
		"UPDATE\"users\"SET a=1", "UPDATE`users`SET`a`=1", "INSERT INTO`t`VALUES(1)", "DROP TABLE`users`",
		"TRUNCATE TABLE\"users\"", "ALTER TABLE\"t\"ADD b int", "CREATE INDEX\"i\"ON\"t\"(a)",
		"/*!50000 DELETE FROM users */", "/*!DELETE FROM users*/", "/*M!100100 DROP TABLE users */",
		"INSERT /*!50000 INTO */ t VALUES (1)", "SELECT 1 INTO OUTFILE '/tmp/x'", "select a, b into dumpfile '/tmp/x' from t",
		"PREPARE x AS DELETE FROM t", "PREPARE s FROM 'DELETE FROM t'", "REINDEX TABLE t", "cluster t using i;",
		"FLUSH TABLES", "FLUSH TABLES WITH READ LOCK", "flush privileges;", "INSTALL PLUGIN x SONAME 'y.so'",
		"CREATE USER 'eve'@'%' IDENTIFIED BY 'x'", "DROP USER 'bob'@'localhost'", "REFRESH MATERIALIZED VIEW v",
		"IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z", "COMMENT ON TABLE t IS 'x'", "COMMENT ON COLUMN t.a IS NULL",
		"SECURITY LABEL ON TABLE t IS 'x'", "NOTIFY c, 'x'", "OPTIMIZE TABLE t;", "RESET MASTER",
		"PURGE BINARY LOGS TO 'x'", "CHANGE MASTER TO MASTER_HOST='x'", "STOP SLAVE;",
		"SELECT 1; CREATE USER eve", "select a from b; reindex", "SELECT 1;SHUTDOWN", "VALUES (1); EXECUTE p",
		"INSERT OVERWRITE TABLE x SELECT 1", "UPSERT INTO x VALUES (1)",
	} {
		if !sqltext.HasEffects(text) {
			t.Errorf("%q: no effects", text)
		}
	}
	for _, text := range []string{
		"", "Hello", "SELECT * FROM users", "SELECT count(*) FROM users WHERE a = 'DELETE'",
		"Please update the docs and set the flag", "Delete from your mind all doubts",
		"Drop me a line when the table is free", "Drop table tennis from the schedule", "Select the best from the menu",
		"Select item(s) from the list", "Select a file (max 5 MB)",
		"Select 3 items (see below) from the list", "Insert into the slot (see page 4)", "Update the set of rules",
		"Update the page; set the title afterwards",
		"Create a table of contents", "Create table of contents", "Create user accounts for all", "Grant access to Bob",
		"Call John (urgent)", "Execute order 66", "Exec summary",
		"Copy the file to the server", "Attach report as pdf", "Set the lights on", "Do it",
		"Truncate the description.", "Merge branch main into feature using rebase",
		"Alter the plan", "Load data from the file", "Lock the door", "Kill the lights", "Begin with the end in mind",
		"Replace into with in to", "Drop in any time",
		"How do I drop a table in SQL?", "I'd like to delete from the cart whatever is old", "With pleasure, delete it",
		"The view was created by the user; drop the role play",
		"It's fine; we update weekly and set goals",
		"- update dependencies\n- delete old files\n- drop support for Go 1.20\n- create index page",
		"Show tables at the fair", "Rename table tennis club", "Declare victory", "Backup the database to the cloud",
		"Explain delete and update to me", "Select one, then delete the rest",
		"Delete the rows where none sits", "Create view of the lake", "Create role models",
		"Revoke licence from driver", "kill 3 birds with one stone",
		"if (x) { update(y); delete z; }", "function drop(table) { return table }",
		"Please truncate table names at 30 characters", "Vacuum the floor",
		"Select a colour; do the rest later", "Select one of the two; then go", "Show the list; call me", "Repair table legs", "Optimize table layout", "Analyze table seven", "Flush the tables with water",
		"Cluster analysis using k-means on the data", "Prepare dinner from scratch", "Comment on the plan is welcome",
		"Refresh the materialized view of the lake", "Reset master password", "Stop replica watches",
		"Start replica production in May", "Install plugin first", "Uninstall plugin before the update", "Notify Ann, please",
		"Change master to bedroom", "Drop \"table\" from the title", "Update \"the page\" and set the title",
		"Select a colour into which to dive", "The [draft] says: delete from [the list] all doubts",
	} {
		if sqltext.HasEffects(text) {
			t.Errorf("%q: has effects", text)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	for name, text := range map[string]string{
		"rows":     "SELECT * FROM t WHERE id IN (" + strings.Repeat("12345, ", 800_000/7) + "1)",
		"strings":  "SELECT " + strings.Repeat("'a', ", 800_000/5) + "1",
		"tails":    strings.Repeat("SELECT 1 --x # y\n", 800_000/17),
		"parens":   "SELECT " + strings.Repeat("(", 800_000),
		"comments": "SELECT 1 " + strings.Repeat("/* ", 800_000/3),
		"quotes":   "SELECT " + strings.Repeat("\\", 800_000),
		"ctes":     "WITH a AS (SELECT 1)" + strings.Repeat(", a AS (SELECT 1)", 800_000/17) + " SELECT 1",
		"updates":  strings.Repeat("update x; ", 800_000/10),
		"prose":    strings.Repeat("Please update the page, and select the best of it. ", 800_000/51),
		"deletes":  strings.Repeat("DELETE FROM t;", 800_000/14),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sqltext.Judge(text)
			}
		})
		b.Run(name+"/HasEffects", func(b *testing.B) {
			for b.Loop() {
				sqltext.HasEffects(text)
			}
		})
	}
}

func FuzzJudge(f *testing.F) {
	for _, j := range corpus(f) {
		f.Add(j.SQL)
	}
	f.Fuzz(func(t *testing.T, text string) {
		verdict := sqltext.Judge(text)
		// Comments, space or other statements around a text do not lower its effect.
		for _, other := range []string{"/* a */ " + text, "SELECT 1; " + text, text + "\n; DROP TABLE t"} {
			if verdict.Effect != sqltext.Read && verdict.Effect != sqltext.Unclear &&
				sqltext.Judge(other).Effect == sqltext.Read {
				t.Errorf("%q is %s, and %q a read", text, verdict.Effect, other)
			}
		}
		sqltext.Destroys(text)
		sqltext.HasEffects(text)
	})
}
