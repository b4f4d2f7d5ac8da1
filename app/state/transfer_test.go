package state

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
)

// issue 28: each table of the state is moved, or is one that the next process makes again.
func TestEachTableIsTransferred(t *testing.T) {
	db, err := database.Open(t.Context(), filepath.Join(t.TempDir(), stateFile), Versions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	known := append(transferred(), "agent_credential", "question", "cluster_setting", "node", "node_value",
		"posted_question", "posted_answer", "moved_run", "session_home", "sign_in_turn",
		"approval_grant", "confirmed_configuration", "run_copy", // of the nodes of a cluster
		"request_rate", "call_rate", // the same
		"audit_log", "audit_leaf", "audit_tree", "audit_file", "audit_tail", // logs stay at their nodes
		"suspended_run", "suspended_file", "suspended_use") // docs/cluster.md: they are ended before
	err = db.View(t.Context(), func(tx database.Tx) error {
		rows, err := tx.QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE type = 'table'")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			if !slices.Contains(known, name) {
				t.Errorf("the table %q is not transferred", name)
			}
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Issue 23: state import left runs behind that waited for people, without a message.
func TestSuspendedRunsAreNotMoved(t *testing.T) {
	home, keys := t.TempDir(), t.TempDir()
	files, err := suspended.Open(store.Suspended(home), keys)
	if err != nil {
		t.Fatal(err)
	}
	db, err := database.Open(t.Context(), filepath.Join(home, stateFile), Versions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	check := func(wait bool) {
		t.Helper()
		for name, err := range map[string]error{"import": checkNoneWaits(home, keys),
			"export": checkNoneWaitsIn(t.Context(), db)} {
			if refused := err != nil && strings.Contains(err.Error(), "there are 1"); refused != wait ||
				err != nil && !wait {
				t.Errorf("%s: got %v, and runs wait: %t", name, err, wait)
			}
		}
	}
	check(false)
	if err := files.Put("run_1", "content", suspended.About{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(),
			"INSERT INTO suspended_run VALUES ('run_1', 'a', 'a/1', 'ann', 'python', '1', 1, 0, 0, x'00')")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	check(true)
}

func TestRowsAreEncryptedForTheTarget(t *testing.T) {
	from, err := database.Open(t.Context(), filepath.Join(t.TempDir(), stateFile), Versions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := database.OpenPostgreSQL(t.Context(), secret.New(databasetest.Schema(t)), "state", Versions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	var keys [3]*agekey.Key
	var texts [3]string
	for i := range keys {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		keys[i], texts[i] = agekey.Of(identity), identity.String()+"\n"
	}
	const files = 2*transferBatch + 1
	fill := func(tx database.Tx) error {
		for i := range files {
			sealed, err := agekey.Seal(agekey.OwnOf(keys[0]), fmt.Append(nil, "content ", i))
			if err == nil {
				_, err = tx.ExecContext(t.Context(), "INSERT INTO vfs VALUES ('a', ?, ?, 9, 1)", fmt.Sprint(i), sealed)
			}
			if err != nil {
				return err
			}
		}
		for _, process := range []string{"mine", "other"} {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO budget_debit VALUES (?, ?, '')", process,
				process); err != nil {
				return err
			}
		}
		for _, scope := range []string{"mine", "other"} { // of two configuration files
			for _, insert := range []string{
				"INSERT INTO pin_set VALUES (?, 3)", "INSERT INTO pin VALUES (?, 's', x'7b7d')"} {
				if _, err := tx.ExecContext(t.Context(), insert, scope); err != nil {
					return err
				}
			}
		}
		sealed, err := agekey.Seal(agekey.OwnOf(keys[0]), []byte("a sign-in"))
		if err == nil {
			_, err = tx.ExecContext(t.Context(), "INSERT INTO sign_in VALUES ('id', 'revision', ?)", sealed)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(t.Context(), "INSERT INTO reputation VALUES (7, 'a', 1, 1, 'x', 'y', '', 'z')")
		return err
	}
	if err := from.Update(t.Context(), fill); err != nil {
		t.Fatal(err)
	}
	move := &transfer{from: from, to: to, opens: agekey.OwnOf(keys[0]), seals: keys[1].Recipient(),
		owner: func(process string) (string, bool) { return "node@" + process, process == "mine" },
		scope: func(scope string) (string, bool) { return "", scope == "mine" }}
	if err := to.Update(t.Context(), func(tx database.Tx) error { // by a command that has read the tools
		_, err := tx.ExecContext(t.Context(), "INSERT INTO pin_set VALUES ('', 1)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := move.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	both, err := agekey.Parse("both", []byte(texts[2]+texts[1]))
	if err != nil {
		t.Fatal(err)
	}
	checkSignIn(t, to, keys[1], keys[2], both)
	err = to.View(t.Context(), func(tx database.Tx) error {
		var sealed []byte
		err := tx.QueryRowContext(t.Context(), "SELECT sealed FROM vfs WHERE path = '400'").Scan(&sealed)
		if err != nil {
			return err
		}
		if plain, err := agekey.Open(sealed, agekey.OwnOf(keys[1])); err != nil || string(plain) != "content 400" {
			t.Errorf("the last file is %q (%v)", plain, err)
		}
		var n int
		var process string
		err = tx.QueryRowContext(t.Context(), "SELECT count(*) FROM vfs").Scan(&n)
		if err == nil && n != files {
			t.Errorf("%d files, want %d", n, files)
		}
		if err == nil {
			err = tx.QueryRowContext(t.Context(), "SELECT process FROM budget_debit").Scan(&process)
		}
		if process != "node@mine" {
			t.Errorf("the kept record belongs to %q", process)
		}
		var server string
		if err == nil {
			err = tx.QueryRowContext(t.Context(), "SELECT server FROM pin JOIN pin_set ON pin.scope = pin_set.scope "+
				"WHERE pin.scope = '' AND generation = 3").Scan(&server)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkEmpty(t.Context(), to); err == nil {
		t.Error("the target counts as empty")
	}
	if err := clearTables(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if err := checkEmpty(t.Context(), to); err != nil {
		t.Error(err)
	}
}

// checkSignIn checks that a sign-in is encrypted with a key, and encrypts it with the next one, as airlock cluster
// reencrypt does with both.
func checkSignIn(t *testing.T, db *database.DB, key, next, both *agekey.Key) {
	t.Helper()
	for _, key := range []*agekey.Key{key, next} {
		err := db.View(t.Context(), func(tx database.Tx) error {
			var sealed []byte
			err := tx.QueryRowContext(t.Context(), "SELECT sealed FROM sign_in").Scan(&sealed)
			if err != nil {
				return err
			}
			if plain, err := agekey.Open(sealed, agekey.OwnOf(key)); err != nil || string(plain) != "a sign-in" {
				t.Errorf("the sign-in is %q (%v)", plain, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reencryptTable(t.Context(), db, "sign_in", both); err != nil {
			t.Fatal(err)
		}
	}
}
