package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/retention"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxExported is the most bytes of a recording that Export returns, compressed.
const maxExported = 32 << 20

// exported is a recording with its tools, for a copy on another machine.
type exported struct {
	Packed   []byte `json:"packed"` // the lines, compressed as in the file
	Snapshot string `json:"snapshot"`
	Tools    []byte `json:"tools,omitempty"`
}

// Changed returns when recordings were written or removed last, by any process.
func (s *Store) Changed() (time.Time, error) { return retention.Changed(s.dir) }

// Kept returns the runs whose recordings are kept, with the times when they ended.
func (s *Store) Kept() (map[string]time.Time, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	kept := map[string]time.Time{}
	for _, entry := range entries {
		run, finished := strings.CutSuffix(entry.Name(), suffix)
		if !finished || !runID.MatchString(run) {
			continue
		}
		if info, err := entry.Info(); err == nil && !s.kept.Expired(info.ModTime()) { // it may have been removed
			kept[run] = info.ModTime()
		}
	}
	return kept, nil
}

// Export returns the recording of a run with its tools, for Import on another machine. If there is no recording, the
// error wraps fs.ErrNotExist. If it has more than 32 MiB, the error is objects.ErrTooLarge.
func (s *Store) Export(run string) ([]byte, error) {
	f, plain, err := s.open(run)
	if errors.Is(err, ErrNotFound) {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	packed, err := io.ReadAll(io.LimitReader(plain, maxExported+1))
	if err == nil && len(packed) > maxExported {
		err = objects.ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	lines, err := unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var first line
	if err := strictjson.NewDecoder(lines).Decode(&first); err != nil || first.Head == nil || first.Head.RunID != run {
		return nil, fmt.Errorf("the recording of %q is damaged", run)
	}
	tools, err := s.loadTools(first.Head.Snapshot)
	if err != nil {
		return nil, err
	}
	return json.Marshal(exported{packed, first.Head.Snapshot, tools})
}

// Import stores a recording that Export has returned, as one that ended at a time. It does nothing if there is one.
func (s *Store) Import(run string, content []byte, ended time.Time) error {
	path, err := s.path(run)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var e exported
	if err := strictjson.UnmarshalOpen(content, &e); err != nil {
		return err
	}
	sealed, err := agekey.Seal(s.identity.Recipient(), e.Packed)
	if err == nil && e.Tools != nil {
		err = s.keepTools(e.Snapshot, func() ([]byte, error) { return e.Tools, nil })
	}
	if err == nil {
		err = store.WriteFile(path, sealed, 0o600)
	}
	if err == nil {
		err = os.Chtimes(path, ended, ended)
	}
	if err != nil {
		return err
	}
	return s.wrote(int64(len(sealed)))
}
