package agents_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// K-021: signals are states.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	db, err := databasetest.Open(t.Context(), filepath.Join(dir, "agents.db"), agents.Schema, agents.SchemaInherited,
		agents.SchemaApprovers, agents.SchemaLists, agents.SchemaDebits)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	o := agents.New(agents.Options{Database: db, Log: log})
	a, _, err := o.Register(t.Context(), agents.Registration{Name: "a", Type: agents.Supervised, PrincipalID: "u"},
		"ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		signal agents.Signal
		want   agents.Status
		ok     bool
	}{
		{agents.SIGCONT, agents.Active, true}, {agents.SIGSTOP, agents.Suspended, true},
		{agents.SIGSTOP, agents.Suspended, true},
		{agents.SIGCONT, agents.Active, true}, {"SIGTERM", agents.Active, false}, {"sigkill", agents.Active, false},
		{"", agents.Active, false},
		{agents.SIGSTOP, agents.Suspended, true}, {agents.SIGKILL, agents.Killed, true},
		{agents.SIGCONT, agents.Killed, false}, {agents.SIGKILL, agents.Killed, true},
	} {
		err := o.Signal(t.Context(), a.ID, c.signal, "ann")
		found, wrong := o.Find(t.Context(), a.ID)
		if (err == nil) != c.ok || wrong != nil || found.Status != c.want {
			t.Errorf("%s: %v, %s, %v; want %s", c.signal, err, found.Status, wrong, c.want)
		}
	}
	if err := o.Signal(t.Context(), "none", agents.SIGSTOP, "ann"); !errors.Is(err, agents.ErrUnknown) {
		t.Error(err)
	}
}
