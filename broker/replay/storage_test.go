package replay_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/replay"
)

func TestNothingIsReadableAtRest(t *testing.T) {
	dir := t.TempDir()
	record(t, open(t, dir, nil))
	files, _ := filepath.Glob(filepath.Join(dir, "*.age"))
	if len(files) != 1 {
		t.Fatalf("got %q, want one recording", files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// Words that no random bytes happen to have.
	for _, word := range []string{"a secret of the code", "9007199254740993", `"path"`, "printed"} {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("%q is in the clear", word)
		}
	}
	for _, path := range []string{files[0], filepath.Join(dir, "keys", "replay.key")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", path, info.Mode(), err)
		}
	}
}

func TestRecordingsExpire(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	opts := &replay.Options{Keep: time.Hour, Now: func() time.Time { return now }}
	s := open(t, dir, opts)
	record(t, s)
	now = now.Add(2 * time.Hour)
	if _, err := s.Load("run_1"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("two hours later: got %v, want ErrNotFound", err)
	}
	open(t, dir, opts)
	if files, _ := filepath.Glob(filepath.Join(dir, "*.age")); len(files) != 0 {
		t.Errorf("files left: %q", files)
	}
}

func TestOneThatCannotBeFinishedLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	r, err := open(t, dir, nil).Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Answered(exchange(1, "read", `{"path":`)); err == nil {
		t.Error("half a value was recorded")
	}
	if err := r.Close(replay.Output{OutputDigest: "sha256:out", Envelope: json.RawMessage(`{"run_id":"run_1"}`),
		Stdout: "printed\n", Stderr: "warned\n"}); err == nil {
		t.Error("a recording with a gap was finished")
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "run_*")); len(files) != 0 {
		t.Errorf("files left: %q", files)
	}
}

func TestRecordingsAreCompressed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Answered(exchange(1, "read", `{"text":"`+strings.Repeat("the same ", 20_000)+`"}`)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(replay.Output{OutputDigest: "sha256:out"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "run_1.replay.age"))
	if err != nil || info.Size() > 10_000 {
		t.Errorf("got %d bytes, %v, want 180 kB to take less than 10", info.Size(), err)
	}
	if recording, err := s.Load("run_1"); err != nil || len(recording.Exchanges) != 1 {
		t.Errorf("got %+v, %v", recording, err)
	}
}

func TestToolsAreKeptOnceForAllRecordings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	asked := 0
	tools := func() ([]byte, error) { asked++; return []byte("the tools"), nil }
	for i := range 3 {
		h := head()
		h.RunID, h.Snapshot = fmt.Sprintf("run_%d", i), "sha256:"+strings.Repeat("ab", 32)
		r, err := s.Create(h, tools)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(replay.Output{}); err != nil {
			t.Fatal(err)
		}
		if recording, err := s.Load(h.RunID); err != nil || string(recording.Tools) != "the tools" {
			t.Errorf("got %+v, %v, want the tools", recording, err)
		}
	}
	if asked != 1 {
		t.Errorf("the tools were asked for %d times, want once", asked)
	}
}

// With any number of runs, the recordings stay within their limit, and the newest one is
// kept.
func TestRecordingsAreBounded(t *testing.T) {
	dir := t.TempDir()
	const most = 40_000
	s := open(t, dir, &replay.Options{Size: most})
	noise := make([]byte, 1500)
	var newest string
	for i := range 60 {
		h := head()
		h.RunID, h.Snapshot = fmt.Sprintf("run_%d", i), "sha256:"+strings.Repeat("cd", 32)
		newest = h.RunID
		r, err := s.Create(h, func() ([]byte, error) { return []byte("tools"), nil })
		if err != nil {
			t.Fatal(err)
		}
		rand.Read(noise)
		if err := r.Answered(exchange(1, "read", fmt.Sprintf(`{"noise":"%x"}`, noise))); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(replay.Output{}); err != nil {
			t.Fatal(err)
		}
	}
	total, count := int64(0), 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total, count = total+info.Size(), count+1
		}
	}
	if total > most+most/16 || count < 5 || count > 50 {
		t.Errorf("got %d bytes in %d files, want at most about %d", total, count, most)
	}
	if recording, err := s.Load(newest); err != nil || string(recording.Tools) != "tools" {
		t.Errorf("the newest: got %+v, %v, want it with its tools", recording, err)
	}
	if _, err := s.Load("run_0"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("the oldest: got %v, want ErrNotFound", err)
	}
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	big := make([]byte, most)
	rand.Read(big)
	if err := r.Answered(exchange(1, "read", fmt.Sprintf(`{"noise":"%x"}`, big))); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(replay.Output{}); err == nil {
		t.Error("one that is larger than all may be: got nil, want an error")
	}
}
