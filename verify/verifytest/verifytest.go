// Package verifytest runs the engines of sdk/python in a separate process, for tests of
// callers of a verify service. It isolates nothing.
package verifytest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/verify"
)

// Engines are the real engines, one request at a time. Verify may be called concurrently.
type Engines struct {
	mu      sync.Mutex
	program *testenv.Program
}

// Python returns the command that runs Python with the packages of sdk/python. If they are
// not installed (`make sdk` installs them), the test is skipped, or fails with
// AIRLOCK_TEST_SANDBOX=1.
func Python(t testing.TB, arguments ...string) *exec.Cmd {
	t.Helper()
	root := testenv.RepoRoot(t)
	installed := filepath.Join(root, "bin", "python-sdk")
	if _, err := os.Stat(installed); err != nil {
		if testenv.WantsSandboxes() {
			t.Fatalf("the packages of sdk/python are missing (run `make sdk` first): %v", err)
		}
		t.Skip("needs the packages of sdk/python: run `make sdk`")
	}
	command := exec.Command("python3", append([]string{"-B"}, arguments...)...)
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"PYTHONPATH=" + filepath.Join(root, "sdk", "python", "src") + string(os.PathListSeparator) + installed,
	}
	return command
}

// Start starts the engines; they end with the test.
func Start(t testing.TB) *Engines {
	t.Helper()
	command := Python(t, "-m", "qwed_sdk.engine", "--serve", "--lazy")
	return &Engines{program: testenv.StartProgram(t, command)}
}

// Verify asks one engine.
func (e *Engines) Verify(ctx context.Context, r verify.Request) (verify.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return verify.Verdict{}, err
	}
	line, err := json.Marshal(map[string]any{"engine": r.Engine, "arguments": r.Arguments})
	if err != nil {
		return verify.Verdict{}, fmt.Errorf("asking the engine %q: %w", r.Engine, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	answer, err := e.program.Ask(line)
	if err != nil {
		return verify.Verdict{}, fmt.Errorf("asking the engine %q: %w", r.Engine, err)
	}
	var verdict struct {
		Status  verify.Status `json:"status"`
		Engine  string        `json:"engine"`
		Message string        `json:"message"`
	}
	err = strictjson.UnmarshalOpen(answer, &verdict)
	return verify.Verdict{Status: verdict.Status, Engine: verdict.Engine, Reason: verdict.Message, Body: answer}, err
}
