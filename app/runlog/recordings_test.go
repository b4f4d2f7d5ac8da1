package runlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/redact"
)

// The store is opened once for a page: each time, it looks at all recordings, and removes those that have expired.
func TestAPageOpensTheRecordingsOnce(t *testing.T) {
	directories := setup.Directories{Recordings: t.TempDir(), Keys: t.TempDir()}
	log := New(directories, &config.Config{Replay: config.Replay{Keep: time.Hour}}, redact.New())
	path := filepath.Join(directories.Recordings, "run_1.replay.age")
	isKept := func(load func(string) (*replay.Recording, error)) bool {
		t.Helper()
		old := time.Now().Add(-2 * time.Hour)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
		if _, err := load("run_1"); !errors.Is(err, replay.ErrNotFound) {
			t.Errorf("an expired recording: %v", err)
		}
		_, err := os.Stat(path)
		return err == nil
	}
	page := log.Recordings()
	if isKept(page) || !isKept(page) || isKept(log.Recordings()) {
		t.Error("the store is not opened once for each page")
	}
}
