package agents

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// deadline bounds one program. Some of them load for seconds.
const deadline = 3 * time.Minute

// TestExamplesOfAgents runs each program of examples/agents with the published packages. The program prints the result
// of a real run.
func TestExamplesOfAgents(t *testing.T) {
	built := testenv.Sandbox(t)
	root := testenv.RepoRoot(t)
	examples := filepath.Join(root, "examples", "agents")
	python := filepath.Join(root, "bin", "python-agents")
	tsx := filepath.Join(examples, "node_modules", ".bin", "tsx")
	for _, path := range []string{python, tsx} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v (run `make examples`)", err)
		}
	}
	programs, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(t.TempDir(), "client")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", client, "./examples/agents/go")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commands := map[string][]string{"client in Go": {client}}
	for _, file := range programs {
		switch path := filepath.Join(examples, file.Name()); filepath.Ext(file.Name()) {
		case ".py":
			commands[file.Name()] = []string{"python3", path}
		case ".ts":
			commands[file.Name()] = []string{tsx, path}
		}
	}
	if len(commands) < 8 {
		t.Errorf("only %d programs in %s", len(commands), examples)
	}
	for name, command := range commands {
		t.Run(name, func(t *testing.T) {
			scripted := &model{}
			server := httptest.NewServer(scripted)
			defer server.Close()
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "AIRLOCK="+filepath.Join(root, "bin", "airlock"),
				"AIRLOCK_HOME="+testenv.NewHome(t, built), "AIRLOCK_RUNSC="+built.Runsc, "AIRLOCK_CONFIG=",
				"PYTHONPATH="+python, "PYTHONDONTWRITEBYTECODE=1", "HOME="+t.TempDir(),
				"OPENAI_API_KEY=scripted", "OPENAI_BASE_URL="+server.URL+"/v1", "OPENAI_AGENTS_DISABLE_TRACING=1",
				"ANTHROPIC_API_KEY=scripted", "ANTHROPIC_BASE_URL="+server.URL,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
			var messages strings.Builder
			cmd.Stderr = &messages
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), "338350") {
				t.Errorf("%v\nit printed: %s\nand: %s", err, out, &messages)
			}
			usesModel := !strings.Contains(name, "client")
			calls, answers := scripted.calls.Load(), scripted.answers.Load()
			if usesModel && (calls == 0 || answers == 0) {
				t.Errorf("the model made %d calls and gave %d answers", calls, answers)
			}
		})
	}
}
