package replay

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// prune removes what is too old, and the oldest of what is too much. Drafts of
// other recordings count, and stay until they are too old.
func (s *Store) prune() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var found []fs.FileInfo
	total := int64(0)
	for _, entry := range entries {
		if !strings.HasSuffix(strings.TrimSuffix(entry.Name(), draftSuffix), suffix) {
			continue
		}
		if info, err := entry.Info(); err == nil {
			found, total = append(found, info), total+info.Size()
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	var errs []error
	for _, info := range found {
		tooMuch := total > s.opts.Size && !strings.HasSuffix(info.Name(), draftSuffix)
		if !s.expired(info) && !tooMuch {
			continue
		}
		if err := removeIfThere(filepath.Join(s.dir, info.Name())); err != nil {
			errs = append(errs, err)
		}
		total -= info.Size()
	}
	return errors.Join(errs...)
}

func (s *Store) expired(info fs.FileInfo) bool {
	return s.opts.Now().Sub(info.ModTime()) > s.opts.Keep
}

// wrote counts what was written, and prunes once that is a part of what may be kept.
func (s *Store) wrote(bytes int64) error {
	if s.written.Add(bytes) < s.opts.Size/pruneParts {
		return nil
	}
	s.written.Store(0)
	return s.prune()
}

// pruneParts is how often the recordings are pruned while as much is written as
// may be kept.
const pruneParts = 16
