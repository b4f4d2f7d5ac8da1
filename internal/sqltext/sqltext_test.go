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

// Issue 24: statements with few words are found if they are the whole text.
func TestHasEffectsOfWholeStatements(t *testing.T) {
	for _, text := range []string{
		`REINDEX`, `REINDEX;`, `reindex`, `VACUUM`, `VACUUM t`, `VACUUM ANALYZE users`, `ANALYZE users`,
		`ANALYZE TABLE t`, `CREATE USER x`, `CREATE USER eve PASSWORD 'x'`, `CREATE ROLE x LOGIN`,
		`CREATE DATABASE x`, `CREATE SCHEMA x`, `CREATE SEQUENCE s`, `CREATE EXTENSION dblink`,
		`CREATE EXTENSION IF NOT EXISTS plpython3u`, `CREATE TYPE t AS (a int)`, `CREATE DOMAIN d AS int`,
		`CREATE SERVER s FOREIGN DATA WRAPPER f`, `CREATE TABLE t AS TABLE u`, `CREATE TABLE t(a)`,
		`CREATE VIRTUAL TABLE t USING fts5(a)`, `CREATE TRIGGER t AFTER INSERT ON u BEGIN DELETE FROM v; END`,
		`CREATE LANGUAGE plpythonu`, `CREATE TABLESPACE x LOCATION '/tmp'`,
		`CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t`, `CREATE STAGE s URL='s3://x'`,
		`CREATE WAREHOUSE w`, `CREATE TASK t SCHEDULE='1 minute' AS DELETE FROM x`,
		`CREATE PIPE p AS COPY INTO t FROM @s`, `COPY INTO t FROM @s`, `COPY INTO 's3://b/x' FROM t`,
		`COPY t FROM 's3://x'`, `UNLOAD ('select * from t') TO 's3://x'`, `PUT file:///etc/passwd @stage`,
		`GET @stage file:///tmp`, `REMOVE @stage/x`, `UNDROP TABLE t`,
		`EXPORT DATA OPTIONS(uri='gs://x') AS SELECT 1`, `EXPORT DATABASE '/tmp/x'`, `IMPORT DATABASE '/tmp/x'`,
		`INSTALL httpfs`, `INSTALL httpfs;`, `LOAD httpfs`, `LOAD 'x.so'`, `LOAD EXTENSION 'x'`,
		`SELECT load_extension('x')`, `ATTACH 'x.db'`, `ATTACH 'x.db' AS y`, `ATTACH 'x.db' (READ_ONLY)`,
		`DETACH y`, `USE x; DELETE FROM t`, `CHECKPOINT`, `CHECKPOINT;`, `DISCARD ALL`, `LISTEN c`, `UNLISTEN *`,
		`NOTIFY c`, `RESET ALL`, `RESET search_path`, `SET x = 1`, `SET search_path TO x`, `SET GLOBAL x=1`,
		`SET ROLE admin`, `SET SESSION AUTHORIZATION x`, `SET PASSWORD = 'x'`, `SET PASSWORD FOR 'a'@'b' = 'x'`,
		`SET @@global.x=1`, `ALTER SYSTEM SET x = 'y'`, `ALTER DATABASE x SET y = z`, `ALTER ROLE x SUPERUSER`,
		`ALTER USER x IDENTIFIED BY 'y'`, `ALTER TABLE t RENAME TO u`, `ALTER TABLE t SWAP WITH u`,
		`ALTER TABLE t OWNER TO x`, `ALTER TABLE t CLUSTER BY (a)`, `ALTER EXTENSION x UPDATE`,
		`ALTER SEQUENCE s RESTART`, `ALTER SEQUENCE s RESTART WITH 1`, `ALTER VIEW v AS SELECT 1`,
		`ALTER FUNCTION f() OWNER TO x`, `ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO x`,
		`ALTER LARGE OBJECT 1 OWNER TO x`, `DROP OWNED BY x`, `REASSIGN OWNED BY x TO y`, `DROP INDEX i`,
		`DROP TRIGGER t`, `DROP TRIGGER t ON u`, `DROP VIEW v`, `DROP EXTENSION x`, `DROP FUNCTION f`,
		`DROP FUNCTION f(int)`, `DROP AGGREGATE a(int)`, `DROP CAST (a AS b)`, `DROP OPERATOR + (int, int)`,
		`DROP EVENT e`, `DROP LOGIN x`, `DROP LANGUAGE x`, `DROP WAREHOUSE w`, `DROP STAGE s`, `DROP TABLESPACE t`,
		`DROP POLICY p ON t`, `DROP RULE r ON t`, `DROP KEYSPACE k`, `DROP MATERIALIZED VIEW v`, `TRUNCATE t`,
		`TRUNCATE t, u`, `TRUNCATE ONLY t`, `TRUNCATE TABLE t`, `GRANT x TO y`, `GRANT SELECT ON t TO x`,
		`GRANT ROLE x TO USER y`, `REVOKE x FROM y`, `REVOKE ALL PRIVILEGES ON *.* FROM x`, `LOCK TABLE t`,
		`LOCK t IN EXCLUSIVE MODE`, `LOCK TABLES t WRITE`, `UNLOCK TABLES`, `PREPARE TRANSACTION 'x'`,
		`COMMIT PREPARED 'x'`, `ROLLBACK PREPARED 'x'`, `EXECUTE p`, `EXECUTE p(1)`, `EXEC p`, `EXEC p 1`,
		`EXEC dbo.p @a=1`, `CALL p()`, `CALL p`, `{call p(1)}`, `DO 'x'`, `DO $$x$$`, `DO SLEEP(5)`, `KILL 5`,
		`KILL QUERY 5`, `SHUTDOWN`, `shutdown`, `SHUTDOWN WITH NOWAIT`, `RESTORE DATABASE x FROM DISK='y'`,
		`BACKUP DATABASE x TO DISK='y'`, `DBCC CHECKDB`, `DBCC SHRINKDATABASE(x)`, `DENY SELECT ON t TO x`,
		`BULK INSERT t FROM 'x'`, `RECONFIGURE`, `sp_configure 'x', 1`, `xp_cmdshell 'dir'`,
		`EXEC('DROP TABLE t')`, `DECLARE @x int`, `DECLARE c CURSOR FOR SELECT 1`, `BEGIN DELETE FROM t; END;`,
		`BEGIN EXECUTE IMMEDIATE 'DROP TABLE t'; END;`, `WITH x AS (SELECT 1) DELETE FROM t`,
		`WITH x AS (SELECT 1) UPDATE t SET a=1`, `WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x`,
		`SELECT setval('s', 1)`, `SELECT nextval('s')`, `SELECT set_config('a','b',false)`,
		`SELECT pg_read_file('/etc/passwd')`, `SELECT lo_import('/etc/passwd')`, `SELECT lo_unlink(1)`,
		`SELECT dblink('x','DELETE FROM t')`, `SELECT dblink_exec('x')`, `SELECT pg_terminate_backend(1)`,
		`SELECT * FROM OPENROWSET('x')`, `SELECT * FROM openquery(x, 'y')`,
		`SELECT utl_http.request('http://x') FROM dual`, `SELECT writefile('x','y')`,
		`SELECT fts3_tokenizer('x', 'y')`, `SELECT sys_exec('id')`, `SELECT sys_eval('id')`,
		`SELECT benchmark(1e9, md5(1))`, `SELECT sleep(10)`, `SELECT get_lock('a',1)`, `SELECT * INTO t FROM u`,
		`SELECT 1 INTO @x`, `SELECT a FROM t INTO OUTFILE 'x'`, `SELECT * FROM t FOR UPDATE`,
		`SELECT * FROM t LOCK IN SHARE MODE`, `TABLE t INTO OUTFILE 'x'`, `HANDLER t OPEN`, `INSERT t VALUES (1)`,
		`INSERT INTO t SET a=1`, `INSERT INTO t DEFAULT VALUES`, `INSERT INTO t(a) VALUES(1)`,
		`INSERT INTO t VALUES (1),(2)`, `INSERT INTO t TABLE u`, `INSERT INTO t SELECT 1`,
		`INSERT INTO t (SELECT 1)`, `INSERT IGNORE INTO t VALUES(1)`, `INSERT LOW_PRIORITY t VALUES(1)`,
		`INSERT ALL INTO t VALUES (1) SELECT 1 FROM dual`, `REPLACE t VALUES (1)`, `REPLACE INTO t SELECT 1`,
		`UPDATE t SET a=1`, `UPDATE t SET a = a + 1`, `UPDATE ONLY t SET a=1`, `UPDATE t SET (a,b)=(1,2)`,
		`UPDATE t SET a=DEFAULT`, `UPDATE t, u SET t.a=1`, `UPDATE t JOIN u SET a=1`, `UPDATE t SET a:=1`,
		`DELETE t`, `DELETE t WHERE a=1`, `DELETE FROM t`, `DELETE FROM t x`, `DELETE FROM t AS x`,
		`DELETE FROM ONLY t`, `DELETE TOP (1) FROM t`, `DELETE LOW_PRIORITY FROM t`, `DELETE QUICK FROM t`,
		`DELETE IGNORE FROM t WHERE 1`, `DELETE a, b FROM a JOIN b`, `DELETE FROM a, b USING a JOIN b`,
		`DELETE FROM t PARTITION (p)`, `DELETE FROM t;`, `delete from t returning *`,
		`MERGE INTO t USING u ON (t.a=u.a) WHEN MATCHED THEN DELETE`, `PRAGMA user_version=5`,
		`PRAGMA wal_checkpoint(TRUNCATE)`, `EXPLAIN ANALYZE DELETE FROM t`, `EXPLAIN (ANALYZE) UPDATE t SET a=1`,
		`REPAIR TABLE t`, `OPTIMIZE TABLE t`, `CHECK TABLE t`, `CACHE INDEX t IN x`, `FLUSH TABLES`, `FLUSH LOGS`,
		`RENAME TABLE a TO b`, `RENAME USER a TO b`, `SIGNAL SQLSTATE '45000'`, `START SLAVE`, `BINLOG 'x'`,
		`MSCK REPAIR TABLE t`, `OPTIMIZE t ZORDER BY (a)`, `VACUUM t RETAIN 0 HOURS`, `SYSTEM DROP REPLICA 'x'`,
		`SYSTEM SHUTDOWN`, `SYSTEM FLUSH LOGS`, `ALTER TABLE t DELETE WHERE 1`, `ALTER TABLE t UPDATE a=1 WHERE 1`,
		`EXCHANGE TABLES a AND b`, `DETACH TABLE t`,
	} {
		if !sqltext.HasEffects(text) {
			t.Errorf("%q: no effects", text)
		}
	}
	for _, text := range []string{
		"create user eve;", "Create Role x;", "select 1; create database y;", "vacuum t;", "analyze users;",
		"drop event e;", "call p;", "delete from users u", "delete from users as u", "reindex", "shutdown;",
	} {
		if !sqltext.HasEffects(text) {
			t.Errorf("%q: no effects", text)
		}
	}
	for _, text := range []string{
		"create user accounts", "Create user stories", "create role models", "DELETE", "DELETE ACCOUNT",
		"VACUUM CLEANER",
		"RESET PASSWORD", "UPDATE REQUIRED", "EXECUTE ORDER 66", "CALL CENTRE", "SET UP", "LOCK", "LISTEN", "ALTER EGO",
		"DROP SHIPPING EXPLAINED", "Lock table saw", "check table legs", "Delete from the list", "Load balancer",
		"System restart planned", "Grant access to Bob", "Notify Ann", "Copy into folder from desktop", "use it",
		"Drop function (see below)", "Begin update of pages", "Reset all filters", "Analyze table seven, please",
	} {
		if sqltext.HasEffects(text) {
			t.Errorf("%q: has effects", text)
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
		"INSERT /*!50000 INTO */ t VALUES (1)", "SELECT 1 INTO OUTFILE '/tmp/x'",
		"select a, b into dumpfile '/tmp/x' from t",
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
		"Select a colour; do the rest later", "Select one of the two; then go", "Show the list; call me",
		"Repair table legs", "Optimize table layout", "Analyze table seven", "Flush the tables with water",
		"Cluster analysis using k-means on the data", "Prepare dinner from scratch", "Comment on the plan is welcome",
		"Refresh the materialized view of the lake", "Reset master password", "Stop replica watches",
		"Start replica production in May", "Install plugin first", "Uninstall plugin before the update",
		"Notify Ann, please",
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
