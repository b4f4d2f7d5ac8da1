package replay_test

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/broker/replay"
)

// issue 28: a recording is the same on another machine, with its tools and its age.
func TestARecordingOnAnotherMachine(t *testing.T) {
	a, b := open(t, t.TempDir(), nil), open(t, t.TempDir(), nil)
	began := head()
	began.Snapshot = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	r, err := a.Create(began, func() ([]byte, error) { return []byte("the tools"), nil })
	if err == nil {
		err = r.Answered(exchange(1, "read", `{"path":"/a"}`))
	}
	if err == nil {
		err = r.Close(replay.Output{OutputDigest: "sha256:out"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Export("run_2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run without a recording: %v", err)
	}
	kept, err := a.Kept()
	if err != nil || len(kept) != 1 {
		t.Fatalf("got %v, %v", kept, err)
	}
	content, err := a.Export("run_1")
	if err != nil {
		t.Fatal(err)
	}
	ended := kept["run_1"].Add(-time.Hour)
	for range 2 {
		if err := b.Import("run_1", content, ended); err != nil {
			t.Fatal(err)
		}
	}
	want, err := a.Load("run_1")
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Load("run_1")
	if err != nil || !reflect.DeepEqual(got, want) || string(got.Tools) != "the tools" {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if kept, err := b.Kept(); err != nil || !kept["run_1"].Equal(ended) {
		t.Errorf("it ended at %v (%v), want %v", kept["run_1"], err, ended)
	}
	if err := b.Import("run_3", content, ended); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Load("run_3"); err == nil {
		t.Error("a recording is loaded as that of another run")
	}
}
