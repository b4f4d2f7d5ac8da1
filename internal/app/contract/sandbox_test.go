package contract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/internal/app/contract"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// serverVariable makes the test's own program one of the cases' MCP servers.
const serverVariable = "AIRLOCK_CONTRACT_SERVER"

func TestMain(m *testing.M) {
	if server := os.Getenv(serverVariable); server != "" {
		if err := contract.ServeMCP(context.Background(), server, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCasesInSandbox runs every case through the real command, in gVisor.
func TestCasesInSandbox(t *testing.T) {
	env := testenv.Sandbox(t)
	cases, err := contract.Cases()
	if err != nil {
		t.Fatal(err)
	}
	airlock := build(t)
	config := writeConfig(t)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "code")
			if err := os.WriteFile(file, c.Code, 0o600); err != nil {
				t.Fatal(err)
			}
			timeout := 30 * time.Second
			if c.Want.Timeout > 0 {
				timeout = time.Duration(c.Want.Timeout)
			}
			cmd := exec.CommandContext(t.Context(), airlock, "run", "--lang", c.Language, "--config", config, "--timeout", timeout.String(), file)
			cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+env.Home, "AIRLOCK_RUNSC="+env.Runsc)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			var failed *exec.ExitError
			if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
				t.Fatal(err)
			}
			// The command prints both streams of the code on its stderr.
			if err := c.Check(stdout.Bytes(), stderr.String(), stderr.String()); err != nil {
				t.Errorf("%s\n%v\nstderr: %.2000s", c.About, err, stderr.String())
			}
		})
	}
}

// build builds the command and returns its path.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "airlock")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/airlock")
	cmd.Dir = testenv.RepoRoot(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	return path
}

// writeConfig writes a configuration with the cases' servers and returns its path.
func writeConfig(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	allowed, denied := map[string][]string{}, map[string][]string{}
	for _, tool := range contract.Tools() {
		list := allowed
		if tool.Denied {
			list = denied
		}
		list[tool.Server] = append(list[tool.Server], fmt.Sprintf("%q", tool.Name))
	}
	var config strings.Builder
	config.WriteString("mcpServers:\n")
	for _, server := range []string{contract.DemoServer, contract.StoreServer} {
		fmt.Fprintf(&config, "  %s: {command: %q, env: {%s: %s}}\n", server, self, serverVariable, server)
	}
	fmt.Fprintf(&config, "  %s: {command: %q}\n", contract.MissingServer, "false")
	config.WriteString("servers:\n")
	for _, server := range []string{contract.DemoServer, contract.StoreServer} {
		fmt.Fprintf(&config, "  %s: {allow: [%s], deny: [%s]}\n", server, strings.Join(allowed[server], ", "), strings.Join(denied[server], ", "))
	}
	config.WriteString("sandbox: {pool: 0}\n")
	path := filepath.Join(t.TempDir(), "airlock.yaml")
	if err := os.WriteFile(path, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
