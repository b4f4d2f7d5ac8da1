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

// TestCasesInSandbox runs every case in gVisor, as an operator does. The guests have loaded ahead.
func TestCasesInSandbox(t *testing.T) {
	testenv.OwnHome(t)
	doctor := exec.CommandContext(t.Context(), filepath.Join(testenv.RepoRoot(t), "bin", "airlock"), "doctor",
		"--contract")
	doctor.Dir = t.TempDir() // no configuration
	if out, err := doctor.CombinedOutput(); err != nil {
		t.Errorf("airlock doctor --contract: %v\n%s", err, passed.ReplaceAll(out, nil))
	}
}
