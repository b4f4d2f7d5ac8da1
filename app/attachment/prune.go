package attachment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// pruneParts is how often the store is pruned while as much is written as may be
// kept.
const pruneParts = 16

// wrote counts what was written, and prunes once that is a part of what may be kept.
func (s *Store) wrote(bytes int64) error {
	if s.written.Add(bytes) < s.opts.Size/pruneParts {
		return nil
	}
	s.written.Store(0)
	return s.prune()
}

// keptRun is the directory of a run with what it takes.
type keptRun struct {
	dir     string
	changed time.Time
	bytes   int64
}

// prune removes the files of runs that are too old, and the oldest of what is too much.
func (s *Store) prune() error {
	kept, err := s.keptRuns()
	if err != nil {
		return err
	}
	slices.SortFunc(kept, func(a, b keptRun) int { return a.changed.Compare(b.changed) })
	total := int64(0)
	for _, run := range kept {
		total += run.bytes
	}
	var errs []error
	for _, run := range kept {
		if s.opts.Now().Sub(run.changed) <= s.opts.Keep && total <= s.opts.Size {
			continue
		}
		errs = append(errs, os.RemoveAll(run.dir))
		total -= run.bytes
	}
	return errors.Join(errs...)
}

func (s *Store) keptRuns() ([]keptRun, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var kept []keptRun
	for _, entry := range entries {
		if !entry.IsDir() || !runIDForm.MatchString(entry.Name()) {
			continue
		}
		run := keptRun{dir: filepath.Join(s.dir, entry.Name())}
		files, err := os.ReadDir(run.dir)
		if err != nil {
			continue // another process has just removed it
		}
		if info, err := entry.Info(); err == nil {
			run.changed = info.ModTime()
		}
		for _, file := range files {
			if info, err := file.Info(); err == nil {
				run.bytes += info.Size()
			}
		}
		kept = append(kept, run)
	}
	return kept, nil
}

func (s *Store) expired(info fs.FileInfo) bool {
	return s.opts.Now().Sub(info.ModTime()) > s.opts.Keep
}
