package clusterlog_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/objects/objectstest"
)

// keep has the logs of the cluster copied to a server.
func (c *cluster) keep(t *testing.T, server *objectstest.Server, tail bool) {
	t.Helper()
	const prefix = "cluster"
	c.files = filepath.Join(server.Files(), prefix)
	store, err := objects.Open(server.Address(prefix))
	if err != nil {
		t.Fatal(err)
	}
	c.copies = &clusterlog.Copies{Objects: store, Tail: tail}
}

// verifyCopies verifies the copies of the log of a node.
func (c *cluster) verifyCopies(t *testing.T, known clusterlog.Known) audit.Report {
	t.Helper()
	read, err := clusterlog.Copied(t.Context(), c.db, c.key, c.copies.Objects, known.Origin)
	dir := t.TempDir()
	if err == nil {
		err = audit.Mirror(dir, known.Origin, read)
	}
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(dir, &audit.VerifyOptions{Verifier: known.Key, Notes: known.Notes, Copy: true})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func text(r audit.Report) string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.Text)
	}
	return strings.Join(all, "; ")
}

// The full files of a log that was lost with its disk are proved by their copies, and the other records are named. If
// records are replicated, nothing is missing (issue 28).
func TestALogThatWasLostWithItsDisk(t *testing.T) {
	server := objectstest.Start(t)
	for name, tail := range map[string]bool{"full files": false, "replicated": true} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.keep(t, server, tail)
			for range 3 {
				c.work(t, "a", 25)
			}
			if err := os.RemoveAll(c.dir("a")); err != nil {
				t.Fatal(err)
			}
			known := c.verify(t, c.witness).Logs[0]
			switch got := c.verifyCopies(t, known); {
			case tail && (!got.OK() || got.Last != known.Size):
				t.Errorf("got %d records of %d, %s", got.Last, known.Size, text(got))
			case !tail && (got.Last < known.Size/2 || got.Last >= known.Size ||
				!strings.Contains(text(got), "are missing: they were signed")):
				t.Errorf("got %d records of %d, %s", got.Last, known.Size, text(got))
			}
			// The node begins another log, which does not touch these copies.
			c.work(t, "a", 25)
			if got := c.verifyCopies(t, known); got.OK() != tail {
				t.Errorf("after another log: %s", text(got))
			}
		})
	}
}

// Nothing of the copies is readable without the key of the cluster, and a changed copy is found.
func TestCopiesAreEncrypted(t *testing.T) {
	server := objectstest.Start(t)
	c := newCluster(t)
	c.keep(t, server, true)
	c.work(t, "a", 40)
	var files []string
	err := filepath.WalkDir(server.Files(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("operator")) || !bytes.HasPrefix(content, []byte("age-encryption.org/v1")) {
			t.Errorf("%s is readable", path)
		}
		files = append(files, path)
		return err
	})
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	known := c.verify(t, "").Logs[0]
	if err := errors.Join(os.Remove(files[1]), os.Link(files[0], files[1])); err != nil {
		t.Fatal(err)
	}
	if got := c.verifyCopies(t, known); got.OK() {
		t.Error("a copy in place of another is sound")
	}
}

// While the object store is away, files wait, and are copied when it is back.
func TestTheObjectStoreIsAway(t *testing.T) {
	server := objectstest.Start(t)
	c := newCluster(t)
	c.keep(t, server, false)
	server.Stop()
	c.work(t, "a", 40)
	known := c.verify(t, "").Logs[0]
	if _, err := clusterlog.Copied(t.Context(), c.db, c.key, c.copies.Objects,
		known.Origin); !errors.Is(err, clusterlog.ErrNoCopies) {
		t.Errorf("got %v, want %v", err, clusterlog.ErrNoCopies)
	}
	server.Run()
	c.work(t, "a", 1)
	known = c.verify(t, "").Logs[0]
	if got := c.verifyCopies(t, known); got.First != 1 || got.Last < known.Size/2 {
		t.Errorf("got records %d to %d of %d", got.First, got.Last, known.Size)
	}
}

// Copies are removed when their records are older than the time that they are kept for, also those of lost logs.
func TestCopiesExpire(t *testing.T) {
	server := objectstest.Start(t)
	c := newCluster(t)
	c.keep(t, server, true)
	c.work(t, "lost", 40)
	names := objectstest.Names(t, c.files, "audit")
	if len(names) < 2 {
		t.Fatal(names)
	}
	c.execute(t, "UPDATE audit_file SET ended = 0")
	c.execute(t, "UPDATE audit_tail SET stored = 0")
	c.copies.Keep = time.Hour
	c.execute(t, "UPDATE audit_tail SET stored = unixepoch() WHERE start = (SELECT max(start) FROM audit_tail)")
	c.work(t, "a", 1)
	known := c.verify(t, "").Logs[1]
	if got := c.verifyCopies(t, known); !got.OK() || got.Last != known.Size {
		t.Errorf("a part of the log of a node that was lost is old: got %d records of %d, %s", got.Last, known.Size,
			text(got))
	}
	c.execute(t, "UPDATE audit_tail SET stored = 0")
	c.work(t, "a", 1)
	if err := c.copies.Objects.Put(t.Context(), path.Dir(names[0])+"/removals", []byte("summaries")); err != nil {
		t.Fatal(err)
	}
	c.work(t, "b", 1)
	if left := objectstest.Names(t, c.files, "audit"); len(left) != 0 {
		t.Errorf("got %q", left)
	}
}

// replaced is a witness that can be replaced by another one.
type replaced struct {
	by atomic.Pointer[clusterlog.Log]
}

func (r *replaced) Submit(ctx context.Context, c witness.Checkpoint) ([]byte, error) {
	return r.by.Load().Submit(ctx, c)
}

// A process that does not know which records the database has, such as after a commit without an answer, stores the
// others: none is lost.
func TestRecordsAfterAnUnknownCommit(t *testing.T) {
	c := newCluster(t)
	c.keep(t, objectstest.Start(t), true)
	copies := *c.copies
	copies.Dir = c.dir("a")
	var logs [2]*clusterlog.Log
	for i := range logs {
		logs[i] = clusterlog.New(c.db, clusterlog.Options{Node: "a", Key: c.key, Copies: &copies})
		defer logs[i].Close()
	}
	var current replaced
	current.by.Store(logs[0])
	log, err := audit.Open(copies.Dir, &audit.Options{Witnesses: []audit.WitnessOptions{{Witness: &current}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // the first one has an old end of the bytes when it is used again
		current.by.Store(logs[i%2])
		for range 2 {
			if err := log.Append(t.Context(), audit.Record{Kind: audit.KindOperator, Detail: "work"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	known := c.verify(t, "").Logs[0]
	if got := c.verifyCopies(t, known); !got.OK() || got.Last != known.Size {
		t.Errorf("got %d records of %d, %s", got.Last, known.Size, text(got))
	}
}

// All copies of a lost log are encrypted again with another key. Those that were removed meanwhile stay removed (issue
// 28).
func TestCopiesAreRewritten(t *testing.T) {
	c := newCluster(t)
	c.keep(t, objectstest.Start(t), false)
	c.work(t, "a", 40)
	known := c.verify(t, "").Logs[0]
	key := filepath.Join(t.TempDir(), "cluster.key")
	next, err := agekey.Create(key)
	if err != nil {
		t.Fatal(err)
	}
	former := c.key
	c.key = next
	read, err := clusterlog.Copied(t.Context(), c.db, next, c.copies.Objects, known.Origin)
	if err == nil {
		err = audit.Mirror(t.TempDir(), known.Origin, read)
	}
	if !errors.Is(err, clusterlog.ErrUnreadable) {
		t.Errorf("with another key: got %v, want %v", err, clusterlog.ErrUnreadable)
	}
	renew := func(sealed []byte) ([]byte, error) {
		if _, err := agekey.Open(sealed, next); err == nil {
			return nil, nil
		}
		text, err := agekey.Open(sealed, former)
		if err != nil {
			return nil, err
		}
		return agekey.Seal(next.Recipient(), text)
	}
	first, err := clusterlog.RewriteCopies(t.Context(), c.db, c.copies.Objects, renew)
	if err != nil || first < 2 {
		t.Errorf("%d copies were encrypted again, %v", first, err)
	}
	if n, err := clusterlog.RewriteCopies(t.Context(), c.db, c.copies.Objects, renew); err != nil || n != 0 {
		t.Errorf("%d copies were encrypted once more, %v", n, err)
	}
	if got := c.verifyCopies(t, known); got.First != 1 || got.Last < known.Size/2 {
		t.Errorf("got records %d to %d of %d, %s", got.First, got.Last, known.Size, text(got))
	}
	names := objectstest.Names(t, c.files, "audit")
	if len(names) != first {
		t.Fatal(names)
	}
	if err := c.copies.Objects.Delete(t.Context(), names[0]); err != nil {
		t.Fatal(err)
	}
	n, err := clusterlog.RewriteCopies(t.Context(), c.db, c.copies.Objects, func(sealed []byte) ([]byte, error) {
		return sealed, c.db.Exec(t.Context(), "DELETE FROM audit_file")
	})
	if left := objectstest.Names(t, c.files, "audit"); err != nil || n != first-1 || len(left) != 0 {
		t.Errorf("%d copies were replaced (%v), and %q are left", n, err, left)
	}
}
