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

// Each start reads all kept checkpoints, of which a log that is in use has one for each five seconds. One that its
// successor names is not signed and written again to be compared.
func TestKeptCheckpointsAreReadWithFewAllocations(t *testing.T) {
	const n, most = 1000, 8 // for each
	notes, key := keptNotesOf(t, n)
	if list := readNotes(notes, key); list[0].size != 1 || list[n-1].size != n ||
		list[n-1].keptHash != list[n-2].digest() {
		t.Fatalf("got %+v to %+v, want all", list[0], list[n-1])
	}
	if got := testing.AllocsPerRun(3, func() { readNotes(notes, key) }) / n; got > most {
		t.Errorf("got %.1f allocations for each checkpoint, want at most %d", got, most)
	}
	notes[10] = append([]byte(nil), notes[10]...)
	notes[10][len(originPrefix)] ^= 1
	list := readNotes(notes, key)
	if list[10].signed != nil || list[9].signed == nil || list[11].signed == nil {
		t.Errorf("got %+v for a changed checkpoint, want none, and those beside it", list[10])
	}
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
