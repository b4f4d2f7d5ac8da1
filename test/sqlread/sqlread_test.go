package sqlread

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/sqltext"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// texts is the number of texts of a run without AIRLOCK_SQL_FUZZ, which is a duration.
const texts = 10_000

// readsTried is the minimum number of reads that a run must execute.
const readsTried = 300

func corpus(t *testing.T) (all []struct{ Effect, SQL string }) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.RepoRoot(t), "internal", "sqltext", "testdata", "corpus.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var entry struct{ Effect, SQL string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// Issue 24: a text classified as a read is executed in SQLite, PostgreSQL and MariaDB, under the
// settings that change how they split texts, and must not have an effect. Add a text that has one
// to internal/sqltext/testdata/corpus.jsonl.
//
// AIRLOCK_SQL_FUZZ is how long to generate texts, AIRLOCK_SQL_SEED another seed.
func TestReadsHaveNoEffectInDatabases(t *testing.T) {
	databases := append(append([]database{sqlite(t)}, postgres(t)...), mariadb(t)...)
	executed, failed := map[string]int{}, map[string]int{}
	try := func(text string) (changed []string) {
		for _, d := range databases {
			effect, err := d.execute(t.Context(), text)
			if effect {
				changed = append(changed, d.name)
			}
			executed[d.name]++
			if err != nil {
				failed[d.name]++
			}
		}
		return changed
	}

	// The harness detects effects: those of the issue, and of a function, an operator and a
	// conversion.
	for _, text := range []string{"SELECT 1 --\r;DROP TABLE users", "SELECT 1 /*!'*/;DELETE FROM users --'",
		"SELECT 5--1; DELETE FROM users",
		"SELECT purge_old_rows()", "SELECT 1 @#@ 2", "SELECT CAST('x' AS evil)", "SELECT evil 'x'",
		"SELECT GET_LOCK('a', 10)", "SELECT nextval('s')", "SELECT @a := 1",
		"SELECT cron.schedule()", "DELETE FROM users"} {
		if changed := try(text); len(changed) == 0 {
			t.Errorf("%q changed nothing in any database", text)
		}
	}
	clear(executed)
	clear(failed)
	check := func(text string) {
		if sqltext.Judge(text).Effect != sqltext.Read {
			return
		}
		if changed := try(text); len(changed) > 0 {
			line, _ := json.Marshal(map[string]string{"effect": "write", "sql": text})
			t.Errorf("judged to be a read, and changed %s:\n%s", strings.Join(changed, ", "), line)
		}
	}
	for _, entry := range corpus(t) {
		check(entry.SQL)
	}

	seed := uint64(24)
	if given, err := strconv.ParseUint(os.Getenv("AIRLOCK_SQL_SEED"), 10, 64); err == nil {
		seed = given
	}
	g := generator{rand.New(rand.NewPCG(seed, 26)), corpus(t)}
	until, n := time.Time{}, 0
	if long, err := time.ParseDuration(os.Getenv("AIRLOCK_SQL_FUZZ")); err == nil {
		until = time.Now().Add(long)
	}
	for !t.Failed() && (n < texts || time.Now().Before(until)) {
		check(g.text())
		n++
	}
	for _, d := range databases {
		t.Logf("%s: %d reads, %d refused", d.name, executed[d.name], failed[d.name])
		if executed[d.name] < readsTried || failed[d.name] == executed[d.name] {
			t.Errorf("%s executed %d reads and refused %d of them", d.name, executed[d.name], failed[d.name])
		}
	}
	t.Logf("%d texts with the seed %d", n, seed)
}

// generator builds texts from pieces that databases read differently.
type generator struct {
	*rand.Rand
	corpus []struct{ Effect, SQL string }
}

var (
	harmless = []string{"SELECT 1", "SELECT 5", "SELECT name FROM users", "SELECT 'a'", "SELECT \"a\"",
		"SELECT id, name FROM users WHERE id = 1", "SELECT count(*) FROM users",
		"WITH x AS (SELECT 1) SELECT * FROM x", "VALUES (1)", "SELECT a FROM t", "SELECT lower(name) FROM users",
		"EXPLAIN SELECT 1", "SELECT '", "SELECT \"", "SELECT `a`", "SELECT [a]"}
	effects = []string{"; DELETE FROM users", ";DELETE FROM users", "; DROP TABLE users", " DELETE FROM users",
		"; UPDATE users SET id = 9", "; INSERT INTO t VALUES (9)", ", purge_old_rows()",
		" UNION SELECT purge_old_rows()", "; SELECT purge_old_rows()", "; CREATE TABLE x (a int)", "; SET @a = 1",
		" INTO @a", "; SELECT nextval('s')", " @#@ 2", "::evil", ", evil 'x'", "purge_old_rows\n()",
		", CAST('x' AS evil)", ", GET_LOCK('a', 1)", "; BEGIN", " + @a:=1", ", set_config('work_mem', '1MB', false)",
		", (SELECT nextval('s'))", ", cron.schedule()", " FROM (DELETE FROM users RETURNING id) x", ", lastval()",
		", last_insert_id(7)", " === 1", "\n;DELETE FROM t;", "; PRAGMA user_version = 7", "; ATTACH ':memory:' AS z"}
	pieces = []string{"'", "''", "'''", "\"", "\"\"", "`", "[", "]", "]]", "--", "-- ", "--\t", "--x", "---", "#", "# ",
		"#>", "/*", "*/", "/*!", "/*!50000", "/*M!", "/*+", "/**/", "/*/", "//", "\\", "\\'", "\\\\", "\\\"",
		"$$", "$a$", "$1", "$", "\n", "\r", "\r\n", "\t", "\v", "\f", "\x00", "\u0085", "\u00a0", "\u2028", "\ufeff",
		"é", "縗", "ʼ", "ｓ", " ", " ", " ", ";", ";", ",", "(", ")", "E'", "N'", "U&'", "q'[", "X'", "_gbk'", "b'",
		"e'\\'",
		"1", "a", "x", " AS ", " AS a", " AND 1=1", " OR ", "::text", "::int", ":=", ":a", "@a", "@@version", "?", "%s",
		"{", "}", ".", "..", "1.", ".5", "1e", "1e5", "0x1", "-", "+", "*", "/", "||", "->", "->>", "<@", "@>", "GO\n",
		"\nGO\n",
		" LIMIT 1", " WHERE ", " FROM users", " users", "lower(", "count(*)", "now()", " -- '\n", " -- \"\n", "/*'*/",
		"/*\"*/", "--'\n", "#'\n", "\\g", "DELIMITER ", " UNION SELECT ", " ESCAPE '\\'", "'a'", "'b'", "\"c\"",
		" NOT ", " IN (1)"}
)

func (g generator) of(list []string) string { return list[g.IntN(len(list))] }

func (g generator) text() string {
	var text strings.Builder
	text.WriteString(g.of(harmless))
	if g.IntN(4) == 0 {
		text.Reset()
		text.WriteString(g.corpus[g.IntN(len(g.corpus))].SQL)
	}
	for range 1 + g.IntN(3) {
		for range g.IntN(4) {
			text.WriteString(g.of(pieces))
		}
		switch g.IntN(3) {
		case 0:
			text.WriteString(g.of(effects))
		case 1:
			text.WriteString(g.of(effects))
			text.WriteString(g.of(pieces))
		}
	}
	made := text.String()
	// Removing, doubling or swapping bytes changes where tokens end.
	if len(made) > 10 && g.IntN(3) == 0 {
		i := 8 + g.IntN(len(made)-9)
		switch g.IntN(3) {
		case 0:
			made = made[:i] + made[i+1:]
		case 1:
			made = made[:i] + made[i:i+1] + made[i:]
		case 2:
			made = made[:i] + g.of(pieces) + made[i:]
		}
	}
	return made
}
