package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	files "github.com/airlock-mcp/airlock/internal/store"
)

// writer is one Airlock process as the log knows it. It holds a lock on a file
// of its own while it lives, so that the next one to open the log can tell the
// open calls of a dead process from those of a living one.
type writer struct {
	id   string
	path string
	lock *files.Lock
}

// newWriter announces this process, whose records will begin no earlier than
// at the number from. Called with the log's lock held.
func newWriter(dir string, from uint64) (*writer, error) {
	directory := filepath.Join(dir, "writers")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	id := newWriterID()
	path := filepath.Join(directory, id)
	lock, err := files.CreateHeld(path, []byte(strconv.FormatUint(from, 10)), 0o600)
	if err != nil {
		return nil, err
	}
	return &writer{id, path, lock}, nil
}

// finished says that this process has left nothing open.
func (w *writer) finished() { os.Remove(w.path) } // one that stays is only looked at again

func (w *writer) close() error { return w.lock.Release() }

// unfinished is what was begun and not ended, by call or run ID.
type unfinished map[string]Record

// see takes note of one record.
func (u *unfinished) see(r Record) {
	if *u == nil {
		*u = unfinished{}
	}
	switch r.Kind {
	case KindIntent, KindApproval:
		(*u)[r.CallID] = r
	case KindOutcome:
		delete(*u, r.CallID)
	case KindRunStart:
		(*u)[r.RunID] = r
	case KindRunEnd:
		delete(*u, r.RunID)
	}
}

// closing returns a record of an unknown end for each, calls before runs.
func (u unfinished) closing(why, now string) []Record {
	begun := slices.SortedFunc(maps.Values(u), func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.CallID+a.RunID, b.CallID+b.RunID))
	})
	ends := make([]Record, 0, len(begun))
	for _, r := range begun {
		end := Record{Kind: KindOutcome, Time: now, Identity: r.Identity, Act: r.Act, Ruling: r.Ruling, Detail: why}
		end.Arguments = nil
		end.Outcome = OutcomeUnknown
		switch r.Kind {
		case KindApproval: // it was still being asked about, so it was never tried
			end.Outcome = OutcomeRefused
		case KindRunStart:
			end.Kind = KindRunEnd
		}
		ends = append(ends, end)
	}
	return ends
}

// closeUnfinished ends, as unknown, what dead processes began. Called with the
// log's lock held.
func (s *store) closeUnfinished() error {
	directory := filepath.Join(s.dir, "writers")
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == s.writer.id {
			continue
		}
		if err := s.closeWriter(filepath.Join(directory, entry.Name()), entry.Name()); err != nil {
			return fmt.Errorf("closing what process %q left open: %w", entry.Name(), err)
		}
	}
	return nil
}

func (s *store) closeWriter(path, id string) error {
	if files.IsHeld(path) {
		return nil // it lives
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	from, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		from = 1 // it died before it wrote the number
	}
	var left unfinished
	err = each(s.dir, from, id, func(r Record) error {
		if r.Writer == id {
			left.see(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if ends := left.closing("Airlock ended while it was under way", s.now()); len(ends) > 0 {
		if err := s.put(ends); err != nil {
			return err
		}
	}
	if err := s.sync(); err != nil {
		return err
	}
	return os.Remove(path)
}
