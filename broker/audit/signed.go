package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// tamperedError says that a log no longer has what was signed.
type tamperedError struct {
	dir string
	seq uint64
}

// Error is one sentence.
func (e *tamperedError) Error() string {
	return fmt.Sprintf("record %d was signed and is not there as it was signed: somebody changed the log or cut it short", e.seq)
}

// Hint says what to type.
func (e *tamperedError) Hint() string {
	return fmt.Sprintf("`airlock audit verify` lists what is missing; keep %q as evidence, and move it away to begin a new log", e.dir)
}

// holdToSignatures compares the log that was found with what was signed of it,
// before this process signs anything itself: otherwise a log that was cut short
// while no Airlock ran would be sound again after the next start. It returns a
// sentence about records that no signature vouches for, if there are any. Called
// with the log's lock held, and before anything is written.
func (s *store) holdToSignatures(list []segment) (remark string, err error) {
	last, err := lastRecord(list)
	if err != nil {
		return "", err
	}
	signed, findings := readSignatures(s.dir, s.public)
	newest := signed.head
	for _, c := range signed.history {
		if c.seq > newest.seq {
			newest = c
		}
	}
	if err := s.has(newest, last); err != nil || last.Seq == 0 {
		return "", err // an empty log is a new one where nothing was signed
	}
	for _, f := range findings {
		if f.File == headFile {
			return f.Text + "; what was cut off or added before, if anything, cannot be told", nil
		}
	}
	if newest.seq == last.Seq || s.othersLive() {
		return "", nil // a living process is about to sign what it wrote
	}
	return fmt.Sprintf("records %d to %d are not signed: left by an Airlock that was killed, or added", newest.seq+1, last.Seq), nil
}

// lastRecord returns the newest whole record; its number is 0 when there is none.
func lastRecord(list []segment) (Record, error) {
	for i := len(list) - 1; i >= 0; i-- {
		f, err := os.Open(list[i].path)
		if err != nil {
			return Record{}, err
		}
		t, err := readTail(f, 0)
		if err := errors.Join(err, f.Close()); err != nil {
			return Record{}, fmt.Errorf("reading %q: %w", list[i].path, err)
		}
		if t.any {
			return t.last, nil
		}
	}
	return Record{}, nil
}

// has says whether the log still has the record of a checkpoint.
func (s *store) has(c checkpoint, last Record) error {
	if c.seq == 0 || c.seq == last.Seq && c.hash == last.Hash {
		return nil
	}
	there := false
	err := each(s.dir, c.seq, fmt.Sprintf(`"seq":%d,`, c.seq), func(r Record) error {
		there = there || r.Seq == c.seq && r.Hash == c.hash
		return nil
	})
	if err == nil && !there {
		err = &tamperedError{s.dir, c.seq}
	}
	return err
}

// othersLive says whether other processes have the log open. Called before this
// one announces itself.
func (s *store) othersLive() bool {
	entries, err := os.ReadDir(filepath.Join(s.dir, "writers"))
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if files.IsHeld(filepath.Join(s.dir, "writers", entry.Name())) {
			return true
		}
	}
	return false
}
