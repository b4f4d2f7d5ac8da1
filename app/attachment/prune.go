package attachment

import (
	"os"
	"path/filepath"

	"github.com/airlock-mcp/airlock/internal/retention"
)

// prune removes the files of runs that are too old, and the oldest of what is too much.
func (s *Store) prune() error {
	kept, err := s.keptRuns()
	if err != nil {
		return err
	}
	return s.kept.Prune(kept)
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
