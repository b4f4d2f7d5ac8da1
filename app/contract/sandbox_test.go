package contract_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// passed is the lines of cases that passed.
var passed = regexp.MustCompile(`(?m)^ok +\d+ ms .*\n`)

// TestCasesInSandbox runs every case in gVisor, as an operator does.
func TestCasesInSandbox(t *testing.T) {
	testenv.OwnHome(t)
	airlock := filepath.Join(t.TempDir(), "airlock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", airlock, "./cmd/airlock")
	build.Dir = testenv.RepoRoot(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	doctor := exec.CommandContext(t.Context(), airlock, "doctor", "--contract")
	doctor.Dir = t.TempDir() // no configuration
	if out, err := doctor.CombinedOutput(); err != nil {
		t.Errorf("airlock doctor --contract: %v\n%s", err, passed.ReplaceAll(out, nil))
	}
}
