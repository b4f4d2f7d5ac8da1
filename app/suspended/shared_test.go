package suspended

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// group is a cluster with a database.
type group struct {
	*testing.T
	db *database.DB
}

func newGroup(t *testing.T) *group {
	t.Helper()
	db, err := database.OpenPostgreSQL(t.Context(), secret.New(databasetest.Schema(t)), "state", cluster.Schema,
		cluster.SchemaAddresses, cluster.SchemaValues, cluster.SchemaMoves, Schema, cluster.SchemaLoads,
		cluster.SchemaHomes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &group{t, db}
}

// member is a node with its suspended runs.
type member struct {
	*Shared
	node *cluster.Node
}

func (g *group) join(name string) member {
	g.Helper()
	node, err := cluster.Join(g.Context(), g.db, cluster.Options{Name: name, Version: "1",
		Keys:   cluster.Keys{[]byte("the key")},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = node.Close() })
	shared, err := OpenShared(g.Context(), g.db.Fenced(node.Fence), node)
	if err != nil {
		g.Fatal(err)
	}
	return member{shared, node}
}

// execute changes the database as somebody does who is not a node. It returns how many rows changed.
func (g *group) execute(statement string, args ...any) (changed int64) {
	g.Helper()
	if err := g.db.Update(g.Context(), func(tx database.Tx) error {
		result, err := tx.ExecContext(g.Context(), statement, args...)
		if err == nil {
			changed, err = result.RowsAffected()
		}
		return err
	}); err != nil {
		g.Fatal(err)
	}
	return changed
}

// dies has a node lose its lease.
func (g *group) dies(name string) {
	g.execute("UPDATE node SET heartbeat = heartbeat - 60 WHERE name = ?", name)
}

var image = []string{"python@sha256:1"}

func about(number int, files ...File) About {
	return About{Owner: "ann", Image: image[0], Format: "runsc 1", Number: number, Files: files}
}

func file(name string, content []byte) File {
	return File{Name: name, Read: func() ([]byte, error) { return content, nil }}
}

func (g *group) put(m member, run string, a About) {
	g.Helper()
	if err := m.Put(run, []string{run}, a); err != nil {
		g.Fatal(err)
	}
}

func (g *group) claim(m member) []string {
	g.Helper()
	taken, err := m.Claim(g.Context(), image, "runsc 1", 100)
	if err != nil {
		g.Fatal(err)
	}
	return taken
}

// A run of a node that has died is taken by exactly one other node, with its files. The node that had it stores nothing
// of it any more, also if it only had no lease for a while.
func TestARunIsTakenOnce(t *testing.T) {
	g := newGroup(t)
	a, b, c := g.join("a"), g.join("b"), g.join("c")
	large := make([]byte, 2*partSize+100)
	rand.Read(large)
	g.put(a, "run_1", about(1, file("state", large), file("base", []byte("base"))))
	g.put(a, "run_2", about(1, file("base", []byte("base"))))
	g.put(a, "run_on", About{Owner: "ann", Image: image[0], Format: "runsc 1", Continued: true})
	g.put(a, "run_other", About{Owner: "ann", Image: image[0], Format: "runsc 2"})
	if got := g.claim(b); len(got) > 0 {
		t.Fatalf("%v were taken from a node that lives", got)
	}
	g.dies("a")
	var taken atomic.Int32
	var wait sync.WaitGroup
	for _, m := range []member{b, c} {
		wait.Go(func() {
			got, err := m.Claim(t.Context(), image, "runsc 1", 1)
			if err != nil {
				t.Error(err)
			}
			taken.Add(int32(len(got)))
		})
	}
	wait.Wait()
	taken.Add(int32(len(g.claim(b)) + len(g.claim(c))))
	if n := taken.Load(); n != 2 {
		t.Fatalf("%d runs were taken, want each of two once", n)
	}
	has := map[string]member{}
	var content []string
	for _, m := range []member{b, c} {
		for _, run := range []string{"run_1", "run_2"} {
			if m.Get(run, &content) == nil && slices.Equal(content, []string{run}) {
				has[run] = m
			}
		}
	}
	if got, err := has["run_1"].Fetch("state"); err != nil || !bytes.Equal(got, large) {
		t.Errorf("the state: %d bytes, %v", len(got), err)
	}
	g.execute("UPDATE node SET heartbeat = unixepoch() WHERE name = 'a'") // it was only stopped
	if err := a.Put("run_1", 1, about(1)); !errors.Is(err, ErrTaken) {
		t.Errorf("the former node: got %v, want %v", err, ErrTaken)
	}
	if err := a.Remove("run_1"); err != nil {
		t.Error(err)
	}
	if lost, err := a.Taken(t.Context()); err != nil || len(lost) != 2 {
		t.Errorf("the former node has lost %v, %v", lost, err)
	}
	for run, m := range has {
		if err := m.Get(run, &content); err != nil {
			t.Error(err)
		}
		if err := m.Remove(run); err != nil {
			t.Error(err)
		}
	}
	if n := g.execute("DELETE FROM suspended_file"); n != 0 {
		t.Errorf("%d files are left", n)
	}
}

// A file is stored once for all runs, and removed with the last run that needs it, or when the run goes on.
func TestFilesAreShared(t *testing.T) {
	g := newGroup(t)
	a := g.join("a")
	read := 0
	base := File{Name: "base", Read: func() ([]byte, error) { read++; return nil, nil }}
	for i := range 3 {
		g.put(a, fmt.Sprint("run_", i), about(1, base, file(fmt.Sprint("state", i), []byte("x"))))
	}
	if read != 1 {
		t.Errorf("the base was read %d times", read)
	}
	g.put(a, "run_0", About{Owner: "ann", Image: image[0], Format: "runsc 1", Number: 1, Continued: true})
	if _, err := a.Fetch("state0"); !errors.Is(err, ErrDamaged) {
		t.Errorf("the state of a run that went on: %v", err)
	}
	if err := a.Remove("run_1"); err != nil {
		t.Error(err)
	}
	if content, err := a.Fetch("base"); err != nil || len(content) > 0 {
		t.Errorf("the base: %q, %v", content, err)
	}
	if err := a.Remove("run_2"); err != nil {
		t.Error(err)
	}
	if _, err := a.Fetch("base"); !errors.Is(err, ErrDamaged) {
		t.Errorf("the base of no run: %v", err)
	}
}

// Nothing of a run can be read in the database. A run or file that was changed, exchanged, truncated, or made without
// the key is refused.
func TestStoredRunsOfAClusterAreRefused(t *testing.T) {
	g := newGroup(t)
	a := g.join("a")
	canary := rand.Text()
	content := bytes.Repeat([]byte(canary), partSize/len(canary)+10)
	fill := func() {
		for _, run := range []string{"run_1", "run_2"} {
			if err := a.Put(run, []string{canary, run}, about(2, file("state-"+run, content))); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	err := g.db.View(t.Context(), func(tx database.Tx) error {
		for _, table := range []string{"suspended_run", "suspended_file"} {
			all, err := database.RowsIn(context.Background(), tx, "SELECT encode(content, 'escape') FROM "+table, nil,
				database.Column[string])
			if err != nil {
				return err
			}
			for _, text := range all {
				if bytes.Contains([]byte(text), []byte(canary)) {
					t.Errorf("%s can be read", table)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, statement := range map[string]string{
		"of another run": "UPDATE suspended_run SET content = " +
			"(SELECT content FROM suspended_run WHERE run = 'run_2')",
		"of another owner":  "UPDATE suspended_run SET owner = 'eve'",
		"of another image":  "UPDATE suspended_run SET image = 'python@sha256:2'",
		"of another gVisor": "UPDATE suspended_run SET format = 'runsc 2'",
		"of another number": "UPDATE suspended_run SET number = 1",
		"continued":         "UPDATE suspended_run SET continued = 1",
		"truncated":         "UPDATE suspended_run SET content = substr(content, 1, 40)",
		"empty":             "UPDATE suspended_run SET content = ''",
	} {
		g.execute(statement + " WHERE run = 'run_1'")
		var got []string
		if err := a.Get("run_1", &got); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, ErrDamaged)
		}
		g.execute("DELETE FROM suspended_run WHERE run = 'run_1'")
		fill()
	}
	for what, statement := range map[string]string{
		"of another run": "UPDATE suspended_file f SET content = (SELECT content FROM suspended_file o " +
			"WHERE o.name = 'state-run_2' AND o.part = f.part)",
		"without its first part": "UPDATE suspended_file SET part = part + 10",
		"without its last part":  "UPDATE suspended_file SET part = part + 5 * part",
		"shorter by one part":    "UPDATE suspended_file SET parts = 1",
	} {
		g.execute(statement + " WHERE name = 'state-run_1'")
		if _, err := a.Fetch("state-run_1"); !errors.Is(err, ErrDamaged) {
			t.Errorf("a file %s: got %v, want %v", what, err, ErrDamaged)
		}
		g.execute("DELETE FROM suspended_file WHERE name = 'state-run_1'")
		fill()
	}
}
