package attachment

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// Limits bound what one run may attach.
type Limits struct {
	Files     int   // number of files
	FileBytes int64 // bytes of one file
	Bytes     int64 // bytes of all files of the run
}

// DefaultLimits are those of the configuration's defaults. One file fits one frame
// of the socket, encoded.
var DefaultLimits = Limits{Files: 32, FileBytes: 10 << 20, Bytes: 32 << 20}

// A LimitError reports that a run attached too much.
type LimitError struct{ Problem string }

// Error returns the problem.
func (e *LimitError) Error() string { return e.Problem }

// Draft collects the files of a run that goes on. Methods may be called concurrently.
type Draft struct {
	store  *Store // nil keeps nothing, as in a replay
	limits Limits

	mu    sync.Mutex // guards all below
	set   Set
	bytes int64
}

// Begin returns the draft of a run that has attached nothing. Of a nil store it
// keeps nothing, but names and counts as one that does.
func (s *Store) Begin(runID string, owner caller.Owner, limits Limits) *Draft {
	return &Draft{store: s, limits: limits, set: Set{RunID: runID, Owner: owner}}
}

// Continue returns the draft of a run that has attached what the store has of it.
func (s *Store) Continue(runID string, owner caller.Owner, limits Limits) *Draft {
	d := s.Begin(runID, owner, limits)
	if set, err := s.Files(runID); err == nil && set.Owner == owner { // otherwise there is nothing, or it has expired
		d.set = set
		for _, f := range set.Files {
			d.bytes += f.Bytes
		}
		s.owns(owner, runID)
	}
	return d
}

// Adopt stores the files of a run of another machine that goes on at this one. content returns the bytes of a file.
func (s *Store) Adopt(set Set, content func(File) ([]byte, error)) error {
	if known, err := s.Files(set.RunID); err == nil && len(known.Files) == len(set.Files) {
		return nil
	}
	d := s.Begin(set.RunID, set.Owner, Limits{})
	for _, file := range set.Files {
		bytes, err := content(file)
		if err != nil {
			return err
		}
		if canon.Digest(bytes) != file.Digest {
			return fmt.Errorf("adopting %q of %q: its content has another digest", file.Name, set.RunID)
		}
		d.mu.Lock()
		err = d.keepLocked(file, bytes)
		d.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Admit refuses, with a *LimitError, a file of so many bytes that the run may not attach.
func (d *Draft) Admit(bytes int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.admitLocked(bytes)
}

func (d *Draft) admitLocked(bytes int64) error {
	files := len(d.set.Files)
	if slices.ContainsFunc(d.set.Files, func(f File) bool { return f.Name == ResultName }) {
		files--
	}
	switch {
	case bytes == 0:
		return &LimitError{"the file is empty"}
	case bytes > d.limits.FileBytes:
		return &LimitError{fmt.Sprintf(
			"the file has %d bytes, and one may have %d: make it smaller, or attach a part of it", bytes,
			d.limits.FileBytes)}
	case files >= d.limits.Files:
		return &LimitError{fmt.Sprintf("the run has attached %d files, which is as many as it may", d.limits.Files)}
	case d.bytes+bytes > d.limits.Bytes:
		return &LimitError{fmt.Sprintf("the run would have attached %d bytes, and may attach %d: attach less",
			d.bytes+bytes, d.limits.Bytes)}
	}
	return nil
}

// Add stores a file under a unique name derived from wanted, and returns its description.
// The same bytes under the same name are stored once. If a limit is exceeded, Add returns
// a *LimitError.
func (d *Draft) Add(inspected Inspected, wanted string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.admitLocked(int64(len(inspected.Content))); err != nil {
		return File{}, err
	}
	file := File{
		MIME: inspected.MIME, Kind: inspected.Kind, Note: inspected.Note,
		Bytes: int64(len(inspected.Content)), Digest: canon.Digest(inspected.Content),
	}
	name := nameFor(wanted, file.MIME, len(d.set.Files)+1)
	for _, f := range d.set.Files {
		if f.Digest == file.Digest && f.MIME == file.MIME && f.Name == name {
			return f, nil
		}
	}
	file.Name = free(name, func(name string) bool {
		return name == ResultName || slices.ContainsFunc(d.set.Files, func(f File) bool { return f.Name == name })
	})
	d.bytes += file.Bytes
	return file, d.keepLocked(file, inspected.Content)
}

// AddResult keeps a result that is too large for its run's line. It counts towards
// no limit: the socket bounds it.
func (d *Draft) AddResult(json []byte) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file := File{Name: ResultName, MIME: "application/json", Kind: Other, Bytes: int64(len(json)),
		Digest: canon.Digest(json)}
	return file, d.keepLocked(file, json)
}

// keepLocked writes the bytes, then the index that names them.
func (d *Draft) keepLocked(file File, content []byte) error {
	first := len(d.set.Files) == 0
	d.set.Files = append(d.set.Files, file)
	if d.store == nil {
		return nil
	}
	path, err := d.store.path(d.set.RunID, file.Digest)
	if err == nil && first {
		var dir string
		dir, err = d.store.directory(d.set.RunID)
		err = errors.Join(err, os.MkdirAll(dir, 0o700))
	}
	if err == nil {
		err = d.store.write(path, content)
	}
	if err == nil {
		err = d.store.putIndex(d.set)
	}
	if err == nil && d.store.kept.Due(file.Bytes) {
		err = d.store.prune()
	}
	if err != nil {
		d.set.Files = d.set.Files[:len(d.set.Files)-1]
		return fmt.Errorf("keeping %q of %q: %w", file.Name, d.set.RunID, err)
	}
	if first {
		d.store.owns(d.set.Owner, d.set.RunID)
	}
	return nil
}

// Files returns what was attached so far, in order; of a nil draft, nothing.
func (d *Draft) Files() []File {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.set.Files)
}

// Discard removes what was attached.
func (d *Draft) Discard() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set.Files = nil
	if d.store == nil {
		return nil
	}
	dir, err := d.store.directory(d.set.RunID)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
