package clusterlog_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// cluster is a database with the logs of nodes.
type cluster struct {
	db      *database.DB
	key     *agekey.Key
	witness string             // a file
	copies  *clusterlog.Copies // of the logs of nodes; Dir is set by open
	files   string             // the directory with the objects of copies
	log     *clusterlog.Log    // of the node that was opened last
	nodes   string             // a directory with one for each node
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{witness: filepath.Join(dir, "witness"), nodes: filepath.Join(dir, "nodes")}
	var err error
	if c.db, err = databasetest.Open(t.Context(), filepath.Join(dir, "state.db"), clusterlog.Schema,
		clusterlog.SchemaCopies, clusterlog.SchemaRuns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.db.Close() })
	if c.key, err = agekey.Create(filepath.Join(dir, "cluster.key")); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) dir(node string) string { return filepath.Join(c.nodes, node) }

// open opens the log of a node. Each record waits for the database.
func (c *cluster) open(t *testing.T, node string) (*audit.Log, error) {
	t.Helper()
	outside, err := witness.Open(c.witness, "")
	if err != nil {
		t.Fatal(err)
	}
	opts := clusterlog.Options{Node: node, Key: c.key, Witness: outside}
	if c.copies != nil {
		copies := *c.copies
		copies.Dir = c.dir(node)
		opts.Copies = &copies
	}
	c.log = clusterlog.New(c.db, opts)
	return audit.Open(c.dir(node), &audit.Options{SegmentBytes: 4000,
		Witnesses: []audit.WitnessOptions{{Witness: c.log}}})
}

// work opens the log of a node, writes records and closes it.
func (c *cluster) work(t *testing.T, node string, records int) {
	t.Helper()
	log, err := c.open(t, node)
	if err != nil {
		t.Fatal(err)
	}
	defer c.log.Close() // waits for the copies
	for range records {
		if err := log.Append(t.Context(), audit.Record{Kind: audit.KindOperator, Detail: "work"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) verify(t *testing.T, file string) clusterlog.Report {
	t.Helper()
	report, err := clusterlog.Verify(t.Context(), c.db, c.key, file)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// verifyLog compares the log of a node with what the cluster knows of it.
func (c *cluster) verifyLog(t *testing.T, known clusterlog.Known, copied bool) audit.Report {
	t.Helper()
	report, err := audit.Verify(c.dir(known.Node),
		&audit.VerifyOptions{Verifier: known.Key, Notes: known.Notes, Copy: copied})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (c *cluster) execute(t *testing.T, statement string, args ...any) {
	t.Helper()
	err := c.db.Update(t.Context(), func(tx database.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The cluster knows the logs of all nodes, each log is what it knows, and a copy of the records is proved by it (#28).
func TestTheLogsOfAllNodes(t *testing.T) {
	c := newCluster(t)
	for range 3 {
		c.work(t, "b", 20)
		c.work(t, "a", 7)
		c.execute(t, "UPDATE audit_log SET leaf_at = 0") // the next checkpoint makes a leaf
	}
	report := c.verify(t, c.witness)
	if len(report.Findings) > 0 || report.Leaves < 6 || len(report.Logs) != 2 || report.Logs[0].Node != "a" {
		t.Fatalf("got %+v", report)
	}
	for _, known := range report.Logs {
		for _, copied := range []bool{false, true} {
			got := c.verifyLog(t, known, copied)
			if !got.OK() || got.Last != known.Size || got.Witness.Checkpoints < 3 {
				t.Errorf("the log of %s, a copy: %t: got %+v", known.Node, copied, got)
			}
		}
	}
}

// A log that was put back with all of its keys, or begun anew under its name, is refused at the start of its node and
// found by a verification.
func TestALogThatWasPutBack(t *testing.T) {
	c := newCluster(t)
	c.work(t, "a", 5)
	earlier := c.dir("earlier")
	if out, err := exec.Command("cp", "-a", c.dir("a"), earlier).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	c.work(t, "a", 5)
	if err := errors.Join(os.RemoveAll(c.dir("a")), os.Rename(earlier, c.dir("a"))); err != nil {
		t.Fatal(err)
	}
	known := c.verify(t, c.witness).Logs[0]
	got := c.verifyLog(t, known, false)
	if got.OK() || !strings.Contains(got.Findings[len(got.Findings)-1].Text, "are missing") {
		t.Errorf("got %+v, want that records are missing", got)
	}
	if _, err := c.open(t, "a"); !errors.Is(err, witness.ErrConflict) {
		t.Fatalf("got %v, want %v", err, witness.ErrConflict)
	}
	// Without the database, the log grows to the same size with other records.
	log, err := audit.Open(c.dir("a"), nil)
	for i := 0; err == nil && i < 10; i++ {
		err = log.Append(t.Context(), audit.Record{Kind: audit.KindOperator, Detail: "another history"})
	}
	if err = errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if got := c.verifyLog(t, known, false); got.OK() {
		t.Error("another history of the log is sound")
	}
	if _, err := c.open(t, "a"); !errors.Is(err, witness.ErrConflict) {
		t.Fatalf("another history: got %v, want %v", err, witness.ErrConflict)
	}
}

// Changes by a person who can write to the database, but has neither the key nor the witness, are found.
func TestTheDatabaseIsChanged(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, c *cluster){
		"a leaf is changed": func(t *testing.T, c *cluster) {
			c.execute(t, "UPDATE audit_leaf SET leaf = replace(leaf, 'airlock-node', 'airlock-nodes') WHERE number = 1")
		},
		"a leaf is removed": func(t *testing.T, c *cluster) {
			c.execute(t, "DELETE FROM audit_leaf WHERE number = 1")
		},
		"the last leaves are removed": func(t *testing.T, c *cluster) {
			c.execute(t, "DELETE FROM audit_leaf WHERE number > 1")
			c.execute(t, "UPDATE audit_tree SET size = 2")
		},
		"a log is removed": func(t *testing.T, c *cluster) {
			c.execute(t, "DELETE FROM audit_log WHERE node = 'a'")
		},
		"everything is removed": func(t *testing.T, c *cluster) { c.empty(t) },
		"a log gets another key": func(t *testing.T, c *cluster) {
			c.execute(t, "UPDATE audit_log SET key = 'x' WHERE node = 'a'")
		},
		"all is put back to before": func(t *testing.T, c *cluster) { c.putBack(t) },
		"the newest checkpoint is removed": func(t *testing.T, c *cluster) {
			c.execute(t, "UPDATE audit_tree SET note = ''")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for range 2 {
				c.work(t, "a", 2)
				c.work(t, "b", 2)
				c.execute(t, "UPDATE audit_log SET leaf_at = 0")
			}
			if report := c.verify(t, c.witness); len(report.Findings) > 0 {
				t.Fatalf("before: got %q", report.Findings)
			}
			attack(t, c)
			if report := c.verify(t, c.witness); len(report.Findings) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

func (c *cluster) empty(t *testing.T) {
	for _, table := range []string{"audit_log", "audit_leaf", "audit_tree"} {
		c.execute(t, "DELETE FROM "+table)
	}
}

// putBack puts the tables back to the first two leaves, with the checkpoint that the witness has of them.
func (c *cluster) putBack(t *testing.T) {
	notes, err := witness.Stored(c.witness, "airlock-cluster/")
	if err != nil || len(notes) < 4 {
		t.Fatal(len(notes), err)
	}
	c.execute(t, "DELETE FROM audit_leaf WHERE number > 1")
	c.execute(t, "UPDATE audit_tree SET size = 2, note = ?", string(notes[1]))
}

// The signing key is encrypted with the key of the cluster.
func TestAnotherKey(t *testing.T) {
	c := newCluster(t)
	c.work(t, "a", 1)
	var err error
	if c.key, err = agekey.Create(filepath.Join(t.TempDir(), "another.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := clusterlog.Verify(context.Background(), c.db, c.key, ""); err == nil {
		t.Error("another key opens the signing key")
	}
}

// counted counts the queries of a transaction.
type counted struct {
	database.Tx
	queries int
}

func (c *counted) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.queries++
	return c.Tx.QueryContext(ctx, query, args...)
}

func (c *counted) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c.queries++
	return c.Tx.QueryRowContext(ctx, query, args...)
}

// The hashes of the tree are read with one query, however many are needed.
func TestHashesAreReadAtOnce(t *testing.T) {
	c := newCluster(t)
	for range 7 {
		c.work(t, "a", 1)
		c.execute(t, "UPDATE audit_log SET leaf_at = 0")
	}
	leaves, err := database.Rows(t.Context(), c.db, "SELECT leaf FROM audit_leaf ORDER BY number", nil,
		database.Column[string])
	if err != nil {
		t.Fatal(err)
	}
	var want audit.MemoryHashes
	for i, leaf := range leaves {
		hashes, err := tlog.StoredHashes(int64(i), []byte(leaf), want)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, hashes...)
	}
	var indexes []int64
	for i := range want {
		indexes = append(indexes, int64(i))
	}
	var got []tlog.Hash
	var queries int
	if err := c.db.View(t.Context(), func(tx database.Tx) (err error) {
		counting := &counted{Tx: tx}
		got, err = clusterlog.Stored(t.Context(), counting).ReadHashes(indexes)
		queries = counting.queries
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) < 10 || !slices.Equal(got, want) || queries != 1 {
		t.Errorf("got %v with %d queries, want %v", got, queries, want)
	}
}
