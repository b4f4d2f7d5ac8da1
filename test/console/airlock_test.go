// Package console has a real Chromium drive the console of the real program.
package console

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/testenv"
)

// airlock is the real program with a separate state directory, serving over HTTP.
type airlock struct {
	program, configuration string
	address                string          // http://127.0.0.1:PORT
	said                   *testenv.Output // what all of its processes print to stderr
}

// startAirlock serves with a configuration until the test ends.
func startAirlock(t *testing.T, configuration string) *airlock {
	t.Helper()
	testenv.OwnHome(t, "node", "python")
	a := &airlock{
		program:       filepath.Join(testenv.RepoRoot(t), "bin", "airlock"),
		configuration: filepath.Join(t.TempDir(), "airlock.yaml"), said: &testenv.Output{},
	}
	configuration = testenv.WithoutPool(configuration + testenv.HostIsAProxy)
	if err := os.WriteFile(a.configuration, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	command := a.command(ctx, "serve", "--listen", "127.0.0.1:0")
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("airlock said:\n%s", a.said)
		}
		cancel()
		command.Wait() // it was terminated or killed
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, a.said)
	}
	a.address = strings.TrimSpace(line)
	return a
}

// command is one of the program with the same state and configuration. It is asked to
// end when ctx ends.
func (a *airlock) command(ctx context.Context, args ...string) *exec.Cmd {
	switch args[0] {
	case "approvals": // they depend only on the state directory
	case "trust":
		args = append(args, a.configuration)
	default:
		args = append(args, "--config", a.configuration)
	}
	command := exec.CommandContext(ctx, a.program, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Stderr = a.said
	return command
}

// prints runs a verb and returns what it prints to stdout.
func (a *airlock) prints(t *testing.T, args ...string) string {
	t.Helper()
	out, err := testenv.AtTerminal(t, a.command(t.Context(), args...)).Output()
	if err != nil {
		t.Fatalf("airlock %q: %v\n%s", args, err, a.said)
	}
	return string(out)
}

// token makes one for a principal with scopes such as "run,approve".
func (a *airlock) token(t *testing.T, principal, scopes string) string {
	t.Helper()
	return strings.TrimSpace(a.prints(t, "tokens", "create", "of "+principal, "--for", principal, "--scope", scopes))
}

// host connects an agent host with a token.
func (a *airlock) host(t *testing.T, token string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "host", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: a.address + "/mcp",
			HTTPClient: testenv.Bearer(token)}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, a.said)
	}
	t.Cleanup(func() { session.Close() }) // a server that is gone needs no goodbye
	return session
}

// ran is how a program ended.
type ran struct {
	OK    bool
	RunID string `json:"run_id"`
	Error struct{ Type, Message string }
}

// run runs Python code for whom a token identifies, to its end.
func (a *airlock) run(t *testing.T, token, code string) ran {
	t.Helper()
	return runs(t, a.host(t, token), code)
}

func runs(t *testing.T, host *mcp.ClientSession, code string) ran {
	t.Helper()
	result, err := host.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_code",
		Arguments: map[string]any{"language": "python", "code": code}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var got ran
	if err := json.Unmarshal(raw, &got); err != nil || got.RunID == "" {
		t.Fatalf("got %s, %v", raw, err)
	}
	return got
}

// until runs a verb again until it prints a text.
func (a *airlock) until(t *testing.T, text string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if out := a.prints(t, args...); strings.Contains(out, text) {
			return out
		}
		if ctx.Err() != nil {
			t.Fatalf("airlock %q does not print %q\n%s", args, text, a.said)
		}
	}
}
