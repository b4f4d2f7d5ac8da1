package audit_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
)

// A removed log is distinguished from one that never existed.
func TestALogThatIsGone(t *testing.T) {
	dir := t.TempDir()
	if _, err := audit.Verify(filepath.Join(dir, "audit"),
		&audit.VerifyOptions{Keys: filepath.Join(dir, "keys")}); !errors.Is(err, audit.ErrNoLog) {
		t.Errorf("before the first start: got %v, want ErrNoLog", err)
	}
	v := newVictim(t)
	if err := os.RemoveAll(v.dir); err != nil {
		t.Fatal(err)
	}
	if report, err := audit.Verify(v.dir, &audit.VerifyOptions{Keys: v.keys}); err != nil || report.OK() {
		t.Errorf("the directory is gone: got %+v, %v, want findings", report, err)
	}
	witness := filepath.Join(t.TempDir(), "witness")
	w := newWatched(t, witness, "", time.Minute)
	w.work(t, 3)
	if err := errors.Join(os.RemoveAll(w.dir), os.RemoveAll(w.keys)); err != nil {
		t.Fatal(err)
	}
	if report, err := audit.Verify(w.dir, &audit.VerifyOptions{Keys: w.keys, Witness: witness}); err != nil ||
		report.OK() {
		t.Errorf("all but the witness is gone: got %+v, %v, want findings", report, err)
	}
}
