package copies_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/objects/objectstest"
)

// nodes have one database, object store and key.
type nodes struct {
	*testing.T
	db       *database.DB
	identity *age.X25519Identity
	key      *agekey.Key
	dir      string // of the object store
	objects  *objects.Store
}

func newNodes(t *testing.T) *nodes {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), copies.Schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	n := &nodes{T: t, db: db, identity: identity, key: agekey.Of(identity), dir: t.TempDir()}
	if n.objects, err = objects.Open("file://" + n.dir); err != nil {
		t.Fatal(err)
	}
	return n
}

// node returns the files of a node and their copies.
func (n *nodes) node(name string, keep time.Duration) (*attachment.Store, *copies.Copies) {
	n.Helper()
	return n.nodeAt(n.TempDir(), name, keep)
}

// nodeAt is node with the files in a directory.
func (n *nodes) nodeAt(dir, name string, keep time.Duration) (*attachment.Store, *copies.Copies) {
	n.Helper()
	files, err := attachment.Open(dir, &attachment.Options{Keep: keep})
	if err != nil {
		n.Fatal(err)
	}
	return files, n.copiesOf(name, files, keep)
}

func (n *nodes) copiesOf(name string, store copies.Store, keep time.Duration) *copies.Copies {
	return copies.New(copies.Options{Database: n.db, Key: n.key, Objects: n.objects, Node: name,
		Kinds: []copies.Kind{{Name: "files", Store: store, Keep: keep}}, Logger: slog.New(slog.DiscardHandler)})
}

func (n *nodes) attempt(c *copies.Copies) {
	n.Helper()
	if err := c.Attempt(n.Context()); err != nil {
		n.Fatal(err)
	}
}

// stored returns the names of the objects.
func (n *nodes) stored() string {
	n.Helper()
	return strings.Join(objectstest.Names(n, n.dir, "runs"), " ")
}

var ann = caller.Owner{Principal: "ann", Kind: caller.User, Session: "ses_1"}

func attach(t *testing.T, s *attachment.Store, run, text string) *attachment.Draft {
	t.Helper()
	d := s.Begin(run, ann, attachment.DefaultLimits)
	if _, err := d.Add(attachment.Inspect([]byte(text), "text/plain", ""), "a.txt"); err != nil {
		t.Fatal(err)
	}
	return d
}

// issue 28: the files of a run are read at another node from their copies, with their owner and their age. The object
// store sees neither a file nor a name.
func TestAnotherNodeReadsACopy(t *testing.T) {
	n := newNodes(t)
	a, copiesOfA := n.node("a", time.Hour)
	b, copiesOfB := n.node("b", time.Hour)
	d := attach(t, a, "run_1", "first text")
	n.attempt(copiesOfA)
	if _, err := d.Add(attachment.Inspect([]byte("second text"), "text/plain", ""), "b.txt"); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	if got := n.stored(); got != "runs/run_1/files" {
		t.Fatalf("the object store has %q", got)
	}
	sealed, err := os.ReadFile(filepath.Join(n.dir, "runs/run_1/files"))
	if err != nil || bytes.Contains(sealed, []byte("text")) || bytes.Contains(sealed, []byte("ann")) {
		t.Errorf("the copy is readable: %v", err)
	}
	for range 2 {
		if err := copiesOfB.Fetch(t.Context(), "run_1"); err != nil {
			t.Fatal(err)
		}
	}
	set, err := b.Files("run_1")
	if err != nil || set.Owner != ann || len(set.Files) != 2 {
		t.Errorf("got %+v, %v", set, err)
	}
	if _, content, err := b.Read("run_1", "b.txt"); err != nil || string(content) != "second text" {
		t.Errorf("got %q, %v", content, err)
	}
	atA, errA := a.Kept()
	atB, errB := b.Kept()
	if errA != nil || errB != nil || !atA["run_1"].Equal(atB["run_1"]) {
		t.Errorf("attached at %v (%v), and at node b at %v (%v)", atA, errA, atB, errB)
	}
	n.attempt(copiesOfB) // it removes nothing of node a, and copies nothing again
	if err := copiesOfB.Fetch(t.Context(), "run_2"); err != nil {
		t.Errorf("a run without copies: %v", err)
	}
	if _, err := b.Files("run_2"); !errors.Is(err, attachment.ErrNotFound) {
		t.Errorf("a run without copies: %v", err)
	}
}

// A copy of another run, or one that the key of the cluster has not made, is refused.
func TestACopyInPlaceOfAnother(t *testing.T) {
	n := newNodes(t)
	a, copiesOfA := n.node("a", time.Hour)
	attach(t, a, "run_1", "one")
	attach(t, a, "run_2", "two")
	n.attempt(copiesOfA)
	one, two := filepath.Join(n.dir, "runs/run_1/files"), filepath.Join(n.dir, "runs/run_2/files")
	if err := errors.Join(os.Remove(two), os.Link(one, two)); err != nil {
		t.Fatal(err)
	}
	b, copiesOfB := n.node("b", time.Hour)
	if err := copiesOfB.Fetch(t.Context(), "run_2"); err == nil {
		t.Error("the copy of another run is accepted")
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	forged, err := agekey.Seal(agekey.OwnOf(agekey.Of(other)), []byte("{}"))
	if err == nil {
		err = os.WriteFile(one, forged, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := copiesOfB.Fetch(t.Context(), "run_1"); err == nil {
		t.Error("a forged copy is accepted")
	}
	if kept, err := b.Kept(); err != nil || len(kept) != 0 {
		t.Errorf("node b has %v, %v", kept, err)
	}
}

// A copy is removed with its original, and that of a lost node when it is too old.
func TestCopiesAreRemoved(t *testing.T) {
	n := newNodes(t)
	a, copiesOfA := n.node("a", time.Hour)
	d := attach(t, a, "run_1", "one")
	attach(t, a, "run_2", "two")
	n.attempt(copiesOfA)
	if err := d.Discard(); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	if got := n.stored(); got != "runs/run_2/files" {
		t.Errorf("after a removal, the object store has %q", got)
	}
	if err := copiesOfA.Remove(t.Context(), "run_3", "files"); err != nil {
		t.Errorf("removing a copy that is not there: %v", err)
	}
	_, again := n.node("a", time.Hour) // with an empty disk
	n.attempt(again)
	if got := n.stored(); got != "runs/run_2/files" {
		t.Errorf("after the disk was lost, the object store has %q", got)
	}
	_, copiesOfB := n.node("b", time.Nanosecond)
	n.attempt(copiesOfB)
	if got := n.stored(); got != "" {
		t.Errorf("after the time to keep copies, the object store has %q", got)
	}
}

// A copy whose object was not stored when its process ended is made by the next process.
func TestACopyThatWasInterrupted(t *testing.T) {
	n := newNodes(t)
	dir := t.TempDir()
	a, copiesOfA := n.nodeAt(dir, "a", time.Hour)
	attach(t, a, "run_1", "one")
	blocked := filepath.Join(n.dir, "runs")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copiesOfA.Attempt(t.Context()); err == nil {
		t.Fatal("the object was stored")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	_, again := n.nodeAt(dir, "a", time.Hour)
	n.attempt(again)
	if got := n.stored(); got != "runs/run_1/files" {
		t.Errorf("the object store has %q", got)
	}
}

// Files that cannot be read do not stop the copies and the removals of others.
func TestFilesThatCannotBeRead(t *testing.T) {
	n := newNodes(t)
	dir := t.TempDir()
	a, copiesOfA := n.nodeAt(dir, "a", time.Hour)
	attach(t, a, "run_1", "one")
	d := attach(t, a, "run_2", "two")
	n.attempt(copiesOfA)
	attach(t, a, "run_3", "three")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "run_1", "index.age"), nil, 0o600), d.Discard()); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	if got := n.stored(); got != "runs/run_1/files runs/run_3/files" {
		t.Errorf("the object store has %q", got)
	}
}

// tooLarge is a store whose files are too large for copies.
type tooLarge struct {
	copies.Store
	exports int
}

func (s *tooLarge) Export(string) ([]byte, error) {
	s.exports++
	return nil, objects.ErrTooLarge
}

// Files that are too large for a copy are exported once, until they change.
func TestFilesThatAreTooLarge(t *testing.T) {
	n := newNodes(t)
	a, _ := n.node("a", time.Hour)
	large := &tooLarge{Store: a}
	copiesOfA := n.copiesOf("a", large, time.Hour)
	d := attach(t, a, "run_1", "one")
	for range 3 { // the first attempt also looks for old copies
		n.attempt(copiesOfA)
	}
	if large.exports != 1 {
		t.Errorf("exported %d times", large.exports)
	}
	if _, err := d.Add(attachment.Inspect([]byte("more"), "text/plain", ""), "b.txt"); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	if large.exports != 2 {
		t.Errorf("after a change, exported %d times", large.exports)
	}
}

// compared is a store that counts how often its files are listed.
type compared struct {
	copies.Store
	lists int
}

func (s *compared) Kept() (map[string]time.Time, error) {
	s.lists++
	return s.Store.Kept()
}

// The files of a store are listed only if it has changed. A second file of a run and a removal are changes.
func TestOnlyChangedStoresAreRead(t *testing.T) {
	n := newNodes(t)
	dir := t.TempDir()
	a, _ := n.nodeAt(dir, "a", time.Hour)
	store := &compared{Store: a}
	copiesOfA := n.copiesOf("a", store, time.Hour)
	check := func(when string, want int) {
		t.Helper()
		store.lists = 0
		for range 3 {
			n.attempt(copiesOfA)
		}
		if store.lists != want {
			t.Errorf("%s: listed %d times, want %d", when, store.lists, want)
		}
	}
	quiet := func() { // as if nothing had changed for a while
		t.Helper()
		earlier := time.Now().Add(-time.Minute)
		if err := os.Chtimes(dir, earlier, earlier); err != nil {
			t.Fatal(err)
		}
	}
	d := attach(t, a, "run_1", "one")
	check("after a change", 3)
	quiet()
	check("without a change", 1)
	check("later", 0)
	if _, err := d.Add(attachment.Inspect([]byte("more"), "text/plain", ""), "b.txt"); err != nil {
		t.Fatal(err)
	}
	check("after another file", 3)
	b, copiesOfB := n.node("b", time.Hour)
	if err := copiesOfB.Fetch(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	if set, err := b.Files("run_1"); err != nil || len(set.Files) != 2 {
		t.Errorf("got %+v, %v", set, err)
	}
	if err := d.Discard(); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	if got := n.stored(); got != "" {
		t.Errorf("after a removal, the object store has %q", got)
	}
	attach(t, a, "run_2", "two")
	quiet()
	check("after another run", 1)
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "run_2", "index.age"), old, old); err != nil {
		t.Fatal(err)
	}
	check("when files become too old", 0)
	copiesOfA.Compare()
	check("after a minute", 1)
	if got := n.stored(); got != "" {
		t.Errorf("of files that are too old, the object store has %q", got)
	}
}

// After a restart, a node removes its copies with their originals as before.
func TestCopiesAreRemovedAfterARestart(t *testing.T) {
	n := newNodes(t)
	dir := t.TempDir()
	a, copiesOfA := n.nodeAt(dir, "a", time.Hour)
	attach(t, a, "run_1", "one")
	attach(t, a, "run_2", "two")
	n.attempt(copiesOfA)
	_, again := n.nodeAt(dir, "a", time.Hour)
	n.attempt(again)
	if err := os.RemoveAll(filepath.Join(dir, "run_1")); err != nil {
		t.Fatal(err)
	}
	n.attempt(again)
	if got := n.stored(); got != "runs/run_2/files" {
		t.Errorf("the object store has %q", got)
	}
}

// A copy stays the copy of its node if a command of another node reads it, and that node never puts an older one in its
// place.
func TestACommandReadsACopy(t *testing.T) {
	n := newNodes(t)
	dir := t.TempDir()
	_, copiesOfB := n.nodeAt(dir, "b", time.Hour)
	n.attempt(copiesOfB)
	a, copiesOfA := n.node("a", time.Hour)
	d := attach(t, a, "run_1", "one")
	n.attempt(copiesOfA)
	_, command := n.nodeAt(dir, "", time.Hour)
	if err := command.Fetch(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfB)
	if _, err := d.Add(attachment.Inspect([]byte("more"), "text/plain", ""), "b.txt"); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	_, again := n.nodeAt(dir, "b", time.Hour)
	n.attempt(again)
	if err := os.RemoveAll(filepath.Join(dir, "run_1")); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfB)
	n.attempt(again)
	c, copiesOfC := n.node("c", time.Hour)
	if err := copiesOfC.Fetch(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	if set, err := c.Files("run_1"); err != nil || len(set.Files) != 2 {
		t.Errorf("got %+v, %v", set, err)
	}
}

// All copies are encrypted again with another key. One that was removed meanwhile stays removed, and one that a node
// has replaced meanwhile is made again.
func TestCopiesAreRewritten(t *testing.T) {
	n := newNodes(t)
	a, copiesOfA := n.node("a", time.Hour)
	for _, run := range []string{"run_1", "run_2", "run_3"} {
		attach(t, a, run, run)
	}
	n.attempt(copiesOfA)
	if err := n.objects.Delete(t.Context(), "runs/run_3/files"); err != nil {
		t.Fatal(err)
	}
	next, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	both, err := agekey.Parse("key", []byte(next.String()+"\n"+n.identity.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{2, 0} {
		if got, err := copies.Rewrite(t.Context(), n.db, n.objects, both.Renew); err != nil || got != want {
			t.Errorf("%d copies were encrypted again, %v; want %d", got, err, want)
		}
	}
	n.key = agekey.Of(next)
	b, copiesOfB := n.node("b", time.Hour)
	if err := copiesOfB.Fetch(t.Context(), "run_1"); err != nil {
		t.Fatal(err)
	}
	if _, content, err := b.Read("run_1", "a.txt"); err != nil || string(content) != "run_1" {
		t.Errorf("got %q, %v", content, err)
	}

	meanwhile := func(statement string) {
		t.Helper()
		_, err := copies.Rewrite(t.Context(), n.db, n.objects, func(sealed []byte) ([]byte, error) {
			return sealed, n.db.Exec(t.Context(), statement)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	meanwhile("UPDATE run_copy SET changed = 5 WHERE run = 'run_1' AND changed > 5")
	var changed int
	if err := n.db.QueryRow(t.Context(), "SELECT changed FROM run_copy WHERE run = 'run_1'", nil,
		&changed); err != nil || changed != -5 {
		t.Errorf("got %d, %v", changed, err)
	}
	meanwhile("DELETE FROM run_copy")
	if got := n.stored(); got != "" {
		t.Errorf("the object store has %q", got)
	}
}

// While the object store is away, copies wait.
func TestTheObjectStoreIsAway(t *testing.T) {
	n := newNodes(t)
	a, copiesOfA := n.node("a", time.Hour)
	attach(t, a, "run_1", "one")
	blocked := filepath.Join(n.dir, "runs")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copiesOfA.Attempt(t.Context()); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the object store is away: got %v", err)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	n.attempt(copiesOfA)
	if got := n.stored(); got != "runs/run_1/files" {
		t.Errorf("afterwards it has %q", got)
	}
}
