package audit_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/airlock-mcp/airlock/audit"
)

func keptCount(t *testing.T, dir string) int {
	t.Helper()
	return bytes.Count(readFile(t, filepath.Join(dir, "checkpoints")), []byte("\nkept "))
}

func TestACheckpointIsKeptEveryFewSeconds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l, err := audit.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for range 3 {
			before := keptCount(t, dir)
			if err := l.Append(t.Context(), outcome("call_1")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second) // the bubble's clock
			synctest.Wait()
			if got := keptCount(t, dir); got != before+1 {
				t.Errorf("got %d kept checkpoints, want %d", got, before+1)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := keptCount(t, dir); got != before+1 {
				t.Errorf("while nothing happens: got %d kept checkpoints, want %d", got, before+1)
			}
		}
	})
	verified(t, dir)
}

func TestACheckpointIsKeptForEveryFile(t *testing.T) {
	v := newVictim(t)
	sizes := map[int]bool{}
	for _, kept := range v.checkpoints(t) {
		sizes[sizeOf(t, kept)] = true
	}
	last := 0
	for _, path := range v.files(t) {
		last += bytes.Count(readFile(t, path), []byte("\n"))
		if !sizes[last] {
			t.Errorf("there is no checkpoint of record %d, the last of %s", last, filepath.Base(path))
		}
	}
}

// A checkpoint conforms to C2SP, as other programs confirm: a note, signed with the name of
// its origin, with the root of RFC 6962's tree over the lines.
func TestACheckpointIsATlogCheckpoint(t *testing.T) {
	v := newVictim(t)
	lines, _ := v.lines(t)
	report, err := audit.Verify(v.dir, &audit.VerifyOptions{Keys: v.keys})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(report.Key)
	if err != nil || verifier.Name() != report.Origin {
		t.Fatalf("got the key %q, %v, want one under the name %q", report.Key, err, report.Origin)
	}
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var found []tlog.Hash
		for _, i := range indexes {
			found = append(found, stored[i])
		}
		return found, nil
	})
	for i, line := range lines {
		hashes, err := tlog.StoredHashes(int64(i), bytes.TrimSuffix(line, []byte("\n")), reader)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
	}
	for _, kept := range append(v.checkpoints(t), append(readFile(t, v.path("head")), '\n')) {
		n, err := note.Open(bytes.TrimSuffix(kept, []byte("\n")), note.VerifierList(verifier))
		if err != nil {
			t.Fatal(err)
		}
		size := sizeOf(t, kept)
		root, err := tlog.TreeHash(int64(size), reader)
		if want := fmt.Sprintf("%s\n%d\n%s\n", report.Origin, size, root); err != nil ||
			!strings.HasPrefix(n.Text, want) {
			t.Errorf("got %q, %v, want it to begin with %q", n.Text, err, want)
		}
	}
}
