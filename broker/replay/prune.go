package replay

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/retention"
)

// prune removes what is too old, and the oldest of what is too much. Drafts of
// other recordings count, and stay until they are too old.
func (s *Store) prune() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var found []retention.Item
	for _, entry := range entries {
		name, draft := strings.CutSuffix(entry.Name(), draftSuffix)
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		if info, err := entry.Info(); err == nil {
			found = append(found, retention.Item{Path: filepath.Join(s.dir, entry.Name()), Changed: info.ModTime(),
				Bytes: info.Size(), Unfinished: draft})
		}
	}
	return s.kept.Prune(found)
}

// wrote counts written bytes, and prunes if due.
func (s *Store) wrote(bytes int64) error {
	if !s.kept.Due(bytes) {
		return nil
	}
	return s.prune()
}
