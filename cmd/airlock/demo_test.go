package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// The first command of the README works on the repository as it is now.
func TestTheDemo(t *testing.T) {
	testenv.OwnHome(t)
	out, err := exec.Command(filepath.Join(testenv.RepoRoot(t), "examples", "demo", "run")).CombinedOutput()
	if err != nil || strings.Count(string(out), " came out (1 of ") != 2 ||
		!strings.Contains(string(out), "Both programs ran in gVisor") {
		t.Errorf("%v\n%s", err, out)
	}
}
