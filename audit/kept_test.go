package audit

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// keptNotesOf returns so many checkpoints in a chain, as a log keeps them, and their key.
func keptNotesOf(t *testing.T, n int) ([][]byte, verifyingKey) {
	t.Helper()
	key, err := loadSigningKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var notes [][]byte
	var before checkpoint
	for i := range n {
		c := checkpoint{origin: originPrefix + "a", size: uint64(i + 1), kept: uint64(i),
			time: fmt.Sprintf("2026-11-30T10:00:%02d.000000Z", i%60)}
		if i > 0 {
			c.keptHash = before.digest()
		}
		if err := c.sign(&key); err != nil {
			t.Fatal(err)
		}
		notes, before = append(notes, c.signed), c
	}
	return notes, key.public
}

// With another key, each kept checkpoint is a finding. The work for each does not depend on their number.
func TestForgedCheckpointsAreFoundInLinearTime(t *testing.T) {
	const few, many = 200, 2000
	allocated := func(n int) uint64 {
		notes, _ := keptNotesOf(t, n)
		_, other := keptNotesOf(t, 0)
		history := append(bytes.Join(notes, []byte("\n")), '\n')
		var e evidence
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e.readKept(history, other)
		runtime.ReadMemStats(&after)
		if len(e.findings) != n {
			t.Fatalf("got %d findings for %d forged checkpoints", len(e.findings), n)
		}
		if want := 1 + (n-1)*linesOf(notes[0]); e.findings[n-1].Line != want {
			t.Errorf("got line %d for the last one, want %d", e.findings[n-1].Line, want)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := allocated(few), allocated(many); large > 2*many/few*small {
		t.Errorf("%d checkpoints took %d bytes of memory, and %d took %d", few, small, many, large)
	}
}
