package filewatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/airlock-mcp/airlock/internal/filewatch"
)

func TestChangesAreTold(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("real/linked", "1")
	if err := os.Symlink("real/linked", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	w, err := filewatch.New(t.Context(), filepath.Join(dir, "file"), filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		act  func()
	}{
		{"a file that was missing", func() { write("file", "1") }},
		{"written again", func() { write("file", "2") }},
		{"another takes its place", func() {
			write("new", "3")
			if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "file")); err != nil {
				t.Fatal(err)
			}
		}},
		{"removed", func() {
			if err := os.Remove(filepath.Join(dir, "file")); err != nil {
				t.Fatal(err)
			}
		}},
		{"what a link leads to", func() { write("real/linked", "2") }},
	} {
		step.act()
		if _, ok := <-w.Changes(); !ok {
			t.Fatalf("%s: the watcher has ended", step.name)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for range w.Changes() { // a change that was not received may be left
	}
	if err := w.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestTheContextEndsAWatcher(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w, err := filewatch.New(ctx, filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cancel()
	if _, ok := <-w.Changes(); ok {
		t.Error("got a change, want the end")
	}
}

func TestADirectoryThatIsMissing(t *testing.T) {
	if w, err := filewatch.New(t.Context(), filepath.Join(t.TempDir(), "none", "file")); err == nil {
		w.Close()
		t.Error("got nil, want an error")
	}
}
