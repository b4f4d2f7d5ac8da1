package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/store"
)

// issue 27: the log of a daemon that runs for months stays bounded. No line is lost or cut while it is
// rotated, and the oldest file is removed.
func TestTheLogOfADaemonIsRotated(t *testing.T) {
	home := t.TempDir()
	t.Setenv(store.EnvHome, home)
	file, path, err := openServeLog()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l := newServeLog(file)
	if l.file == nil {
		t.Fatal("the log in the state directory is not rotated")
	}
	l.most = 4000
	const writers, lines = 4, 60
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for n := range lines {
				fmt.Fprintf(l, "airlock: writer %d line %d end\n", w, n)
			}
		})
	}
	wait.Wait()
	var all strings.Builder
	for _, name := range []string{path, l.rotated(1), l.rotated(2), l.rotated(3), l.rotated(4)} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if len(text) > 4200 {
			t.Errorf("%s has %d bytes", filepath.Base(name), len(text))
		}
		all.Write(text)
	}
	for line := range strings.Lines(all.String()) {
		if !strings.HasPrefix(line, "time=") || !strings.HasSuffix(line, " end\n") {
			t.Errorf("got the line %q", line)
		}
	}
	if got := strings.Count(all.String(), "\n"); got != writers*lines {
		t.Errorf("got %d lines, want %d", got, writers*lines)
	}
	for n := range 10_000 {
		fmt.Fprintf(l, "airlock: line %d end\n", n)
	}
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) != keptServeLog+1 {
		t.Errorf("got %v, %v, want %d files", left, err, keptServeLog+1)
	}
}

// A standard error that is another file, such as one of systemd or of a shell, is not emptied.
func TestAnotherFileIsNotRotated(t *testing.T) {
	t.Setenv(store.EnvHome, t.TempDir())
	other, err := os.Create(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if l := newServeLog(other); l.file != nil {
		t.Error("another file would be rotated")
	}
}
