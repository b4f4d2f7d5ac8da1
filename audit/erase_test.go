package audit_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// callFor writes a call for a principal with arguments that are kept.
func callFor(t *testing.T, l *audit.Log, principal, id string) {
	t.Helper()
	r := intent(id)
	r.Principal, r.RunID = principal, "run_"+principal
	r.Values = json.RawMessage(`{"to":"` + principal + `"}`)
	r.ArgumentsHash = l.Hash(r.Values)
	end := outcome(id)
	end.Identity, end.ArgumentsHash = r.Identity, r.ArgumentsHash
	if err := errors.Join(l.Append(t.Context(), r), l.Note(t.Context(), end)); err != nil {
		t.Fatal(err)
	}
}

// keptOf counts the calls of a principal whose arguments can be shown.
func keptOf(t *testing.T, dir, keys, principal string) (kept int) {
	t.Helper()
	tree, err := audit.ShowFrom(dir, 1, "run_"+principal)
	if err != nil {
		t.Fatal(err)
	}
	if misfits, err := audit.ShowArguments(dir, keys, tree); err != nil || misfits > 0 {
		t.Fatalf("got %d misfits (%v)", misfits, err)
	}
	for _, c := range tree.Calls {
		if len(c.Arguments) > 0 {
			kept++
		}
	}
	return kept
}

// A running Airlock has the file open that an erasure rewrites, and continues to keep arguments.
func TestErasureOfAPersonsArgumentsWhileAnotherProcessWrites(t *testing.T) {
	dir, keys := t.TempDir(), t.TempDir()
	opts := &audit.Options{Keys: keys, KeepArguments: &audit.ArgumentsOptions{Keep: 24 * time.Hour, Size: 1 << 20}}
	running := open(t, dir, opts)
	callFor(t, running, "ann", "call_1")
	callFor(t, running, "bob", "call_2")
	callFor(t, running, "ann", "call_3")
	files, _ := filepath.Glob(filepath.Join(dir, "arguments", "*"))
	before, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}

	other := open(t, dir, opts)
	e := &audit.Erasure{Principal: "ann", By: audit.Identity{Principal: "carol"}}
	if err := other.EraseArguments(t.Context(), dir, keys, e); err != nil {
		t.Fatal(err)
	}
	if e.Calls != 2 || len(e.Runs) != 1 || len(e.Damaged) != 0 {
		t.Errorf("got %+v, want 2 calls of 1 run", e)
	}
	if after, err := os.Stat(files[0]); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file has another time: it would be kept longer (%v)", err)
	}
	callFor(t, running, "bob", "call_4")
	callFor(t, running, "ann", "call_5")
	if ann, bob := keptOf(t, dir, keys, "ann"), keptOf(t, dir, keys, "bob"); ann != 1 || bob != 2 {
		t.Errorf("got %d calls of ann and %d of bob, want 1 (made afterwards) and 2", ann, bob)
	}
	if err := errors.Join(other.Close(), running.Close()); err != nil {
		t.Fatal(err)
	}
	recorded := false
	for _, r := range records(t, dir) {
		recorded = recorded || r.Kind == audit.KindOperator && r.Principal == "carol" &&
			strings.Contains(r.Detail, `"ann"`)
	}
	if !recorded {
		t.Error("no record of the erasure")
	}
	if r, err := audit.Verify(dir, &audit.VerifyOptions{Keys: keys}); err != nil || !r.OK() {
		t.Errorf("the log is not sound: %+v (%v)", r.Findings, err)
	}
}

func TestErasureNeedsTheKeyOfTheArguments(t *testing.T) {
	dir, keys := t.TempDir(), t.TempDir()
	opts := &audit.Options{Keys: keys, KeepArguments: &audit.ArgumentsOptions{Keep: time.Hour, Size: 1 << 20}}
	l := open(t, dir, opts)
	callFor(t, l, "ann", "call_1")
	if err := os.Remove(filepath.Join(keys, "audit-arguments.key")); err != nil {
		t.Fatal(err)
	}
	err := l.EraseArguments(t.Context(), dir, keys, &audit.Erasure{Principal: "ann"})
	if !errors.Is(err, audit.ErrNoArgumentsKey) {
		t.Errorf("got %v, want %v", err, audit.ErrNoArgumentsKey)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
