package attachment

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/retention"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxExported is the most bytes of the files of a run that Export returns.
const maxExported = 35 << 20

// exported is the files of a run, for a copy on another machine.
type exported struct {
	Set      Set               `json:"set"`
	Contents map[string][]byte `json:"contents"` // by digest
}

// Changed returns when files were attached or removed last, by any process.
func (s *Store) Changed() (time.Time, error) { return retention.Changed(s.dir) }

// Kept returns the runs whose files are kept, with the times when the newest ones were attached.
func (s *Store) Kept() (map[string]time.Time, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	kept := map[string]time.Time{}
	for _, entry := range entries {
		run := entry.Name()
		if !runIDForm.MatchString(run) {
			continue
		}
		info, err := os.Lstat(filepath.Join(s.dir, run, indexFile))
		if err == nil && !s.kept.Expired(info.ModTime()) { // it may have been removed
			kept[run] = info.ModTime()
		}
	}
	return kept, nil
}

// Export returns the files of a run, for Import on another machine. If the run has no files, the error wraps
// fs.ErrNotExist. If they have more than 35 MiB, the error is objects.ErrTooLarge.
func (s *Store) Export(runID string) ([]byte, error) {
	set, err := s.Files(runID)
	e := exported{Set: set, Contents: map[string][]byte{}}
	total := int64(0)
	for _, f := range set.Files {
		if total += f.Bytes; total > maxExported {
			return nil, objects.ErrTooLarge
		}
		if err == nil {
			e.Contents[f.Digest], err = s.content(runID, f)
		}
	}
	if errors.Is(err, ErrNotFound) {
		err = errors.Join(fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(e)
}

// Import stores files that Export has returned, as attached at a time. If the store has as many files of the run, it
// keeps those.
func (s *Store) Import(runID string, content []byte, attached time.Time) error {
	var e exported
	err := strictjson.UnmarshalOpen(content, &e)
	if err == nil && e.Set.RunID != runID {
		err = errors.New("they are the files of another run")
	}
	if err == nil {
		err = s.Adopt(e.Set, func(f File) ([]byte, error) { return e.Contents[f.Digest], nil })
	}
	if err != nil {
		return err
	}
	dir, err := s.directory(runID)
	if err != nil {
		return err
	}
	return errors.Join(os.Chtimes(filepath.Join(dir, indexFile), attached, attached),
		os.Chtimes(dir, attached, attached))
}
