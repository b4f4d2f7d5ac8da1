package attachment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/airlock-mcp/airlock/internal/retention"
)

// prune removes the files of runs that are too old, and the oldest of what is too much.
func (s *Store) prune() error {
	kept, err := s.keptRuns()
	if err != nil {
		return err
	}
	err = s.kept.Prune(kept)
	s.forgetRemoved()
	return err
}

// forgetRemoved forgets the owners of runs whose files were removed. Sessions of other nodes of a cluster do not end
// here.
func (s *Store) forgetRemoved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, ids := range s.own {
		ids = slices.DeleteFunc(ids, func(id string) bool {
			_, err := os.Lstat(filepath.Join(s.dir, id))
			return errors.Is(err, fs.ErrNotExist)
		})
		if s.own[owner] = ids; len(ids) == 0 {
			delete(s.own, owner)
		}
	}
}

// keptRuns are the directories of runs with what they take.
func (s *Store) keptRuns() ([]retention.Item, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var kept []retention.Item
	for _, entry := range entries {
		if !entry.IsDir() || !runIDForm.MatchString(entry.Name()) {
			continue
		}
		run := retention.Item{Path: filepath.Join(s.dir, entry.Name())}
		files, err := os.ReadDir(run.Path)
		if err != nil {
			continue // another process has just removed it
		}
		if info, err := entry.Info(); err == nil {
			run.Changed = info.ModTime()
		}
		for _, file := range files {
			if info, err := file.Info(); err == nil {
				run.Bytes += info.Size()
			}
		}
		kept = append(kept, run)
	}
	return kept, nil
}
