package agents

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
)

// many is the number of agents in the test of scale.
const many = 100_000

// openMany opens a service with registered agents: agent i has the owner i modulo 10, the profile i
// modulo 100, and the credential i modulo 10,000.
func openMany(t *testing.T, agents int) (*Service, *database.DB) {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	path := filepath.Join(dir, "state.db")
	db, err := database.Open(t.Context(), path, Schema, SchemaInherited, SchemaLists, SchemaDebits)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT ?)
			INSERT INTO agent SELECT printf('agent_%06d', i), 'a', 'supervised', 'ann', printf('o%d', i % 10), '{}',
				'active', CAST(printf('%032d', i) AS BLOB), 0, 0, json_object('profile', printf('p%d', i % 100),
				'credentials', json_array(json_object('id', printf('c%d', i % 10000)))), 0 FROM n`, agents)
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	// The migration reads the agents of earlier versions.
	db, err = database.Open(t.Context(), path, Schema, SchemaInherited, SchemaLists, SchemaDebits, SchemaSelections)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return New(Options{Database: db, Log: log}), db
}

// steps returns the plan of a statement.
func steps(t *testing.T, db *database.DB, query string, args ...any) (plan []string) {
	t.Helper()
	err := db.View(t.Context(), func(tx database.Tx) error {
		rows, err := tx.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				return err
			}
			plan = append(plan, step)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// Agents are selected by indexes whose columns include all conditions, so the rows that a statement
// reads are those that it returns, however many agents there are.
func TestSelectionsOfAgentsUseIndexes(t *testing.T) {
	_, db := openMany(t, 10)
	type statement struct {
		query string
		args  []any
		want  string // in each step of the plan that names the table
	}
	statements := map[string]statement{"of a credential": {agentsOf, []any{"c1"}, "SEARCH agent"}}
	for name, c := range map[string]struct {
		only Selection
		want string
	}{
		"all":          {Selection{}, "(id>?)"},
		"of an owner":  {Selection{Owner: "o1"}, "(owner=? AND id>?)"},
		"of a profile": {Selection{Profile: "p1"}, "(<expr>=? AND id>?)"},
		"of a period": {Selection{Created: audit.Period{Since: time.Unix(1, 0), Until: time.Unix(2, 0)}},
			"(id>?)"},
		"of a profile and owner": {Selection{Owner: "o1", Profile: "p1"}, "(owner=? AND <expr>=? AND id>?)"},
	} {
		query, args := c.only.query("agent_000001", 10)
		statements[name] = statement{query, args, c.want}
	}
	for name, s := range statements {
		plan := steps(t, db, s.query, s.args...)
		for _, step := range plan {
			if !strings.HasPrefix(step, "SEARCH agent") || !strings.Contains(step, s.want) {
				t.Errorf("%s: the plan %q has a step without %q", name, plan, s.want)
			}
		}
	}
}

func TestManyAgents(t *testing.T) {
	agents := many
	if testing.Short() {
		agents = 20_000
	}
	s, _ := openMany(t, agents)
	for _, only := range []Selection{{}, {Owner: "o7"}, {Profile: "p37"}, {Owner: "o7", Profile: "p37"}} {
		last := fmt.Sprintf("agent_%06d", agents-1000)
		list, err := s.List(t.Context(), only, last, 3)
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v: got %d agents, %v, want 3", only, len(list), err)
		}
		for _, a := range list {
			isOther := only.Owner != "" && a.Owner != only.Owner || only.Profile != "" && a.Profile != only.Profile
			if a.ID <= last || isOther {
				t.Errorf("%+v: got %s of %s with %s", only, a.ID, a.Owner, a.Profile)
			}
		}
	}
	if err := s.EndOf(t.Context(), "c4711", "ann"); err != nil {
		t.Fatal(err)
	}
	var killed []string
	err := s.opts.Database.View(t.Context(), func(tx database.Tx) error {
		killed = column(t, tx, `SELECT id FROM agent WHERE status = 'killed' ORDER BY id`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := 4711; i < agents; i += 10_000 {
		want = append(want, fmt.Sprintf("agent_%06d", i))
	}
	if !slices.Equal(killed, want) {
		t.Errorf("killed are %v, want %v", killed, want)
	}
}

func column(t *testing.T, tx database.Tx, query string) (values []string) {
	t.Helper()
	rows, err := tx.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return values
}
