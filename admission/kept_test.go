package admission_test

import (
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// Rows that killed processes have left are recorded at the start: those of a commit with several records, and those of
// an earlier version, which had one each (#24).
func TestLeftRecordsAreWritten(t *testing.T) {
	dir := t.TempDir()
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "agents.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string) string {
		text, err := audit.Record{Kind: audit.KindAction, Identity: audit.Identity{Principal: "agent_x"},
			Ruling: audit.Ruling{Decision: "APPROVED", DebitID: id}}.Text()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	err = db.Update(t.Context(), func(tx database.Tx) error {
		for id, text := range map[string]string{"debit_a": record("debit_a") + "\n" + record("debit_b") + "\n",
			"debit_c": record("debit_c")} {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO budget_debit VALUES (?, 'gone', ?)`, id, text)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds nothing
		_, end, err := openState(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := agents.Activity(filepath.Join(dir, "audit"), "agent_x", audit.Period{}, 0, 10)
	if err != nil || len(entries) != 3 {
		t.Errorf("got %d entries, %v, want 3", len(entries), err)
	}
	var left int
	err = db.View(t.Context(), func(tx database.Tx) error {
		return tx.QueryRowContext(t.Context(), `SELECT count(*) FROM budget_debit`).Scan(&left)
	})
	if err != nil || left != 0 {
		t.Errorf("got %d rows, %v, want none", left, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
