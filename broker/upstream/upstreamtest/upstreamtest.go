// Package upstreamtest starts the fake MCP server of test/fakeserver for tests.
package upstreamtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// Fake returns the configuration of a fake server that behaves in one of the
// modes of test/fakeserver. The server's ID is the mode.
func Fake(t testing.TB, mode string) (upstream.Config, Notes) {
	t.Helper()
	notes := Notes(filepath.Join(t.TempDir(), "notes"))
	return upstream.Config{ID: mode, Command: Program(t), Args: []string{"-mode", mode, "-note", string(notes)}}, notes
}

// Program returns the path of the fake server's program.
func Program(t testing.TB) string {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// build builds the program once for a test binary. It is stored in the user's cache directory
// under a name that contains its digest, so that concurrent test binaries share it.
var build = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	directory := filepath.Join(cache, "airlock-test")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(directory, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	program := filepath.Join(fresh, "fakeserver")
	if out, err := exec.Command("go", "build", "-o", program,
		"github.com/airlock-mcp/airlock/test/fakeserver").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the fake server: %w\n%s", err, out)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(code)
	kept := filepath.Join(directory, "fakeserver-"+hex.EncodeToString(sum[:8]))
	return kept, os.Rename(program, kept)
})

// Notes is the file into which a fake server writes what happens to it, a line
// each: "started PID", "initialize PARAMS", "call NAME ARGUMENTS", "cancelled",
// "stdin ended".
type Notes string

// Lines returns the lines that begin with prefix, so far.
func (n Notes) Lines(t testing.TB, prefix string) []string {
	t.Helper()
	raw, err := os.ReadFile(string(n))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
