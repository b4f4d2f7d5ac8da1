package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// face is a session with `airlock mcp`, as an agent host has one.
type face struct {
	session *mcp.ClientSession
	process *os.Process
}

// openFace starts an Airlock with the given configuration and additional variables. It has a state directory of its
// own: while one serves an agent, another configuration of the same directory needs a person's confirmation.
func (b *bench) openFace(ctx context.Context, config map[string]any, undo *cleanup.Stack, env ...string) (*face,
	error) {
	return b.openVerb(ctx, []string{"mcp"}, config, undo, env...)
}

// openVerb starts a verb of Airlock that is an MCP server.
func (b *bench) openVerb(ctx context.Context, verb []string, config map[string]any, undo *cleanup.Stack,
	env ...string) (*face, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	home, err := stateDirectory(b.home, "face-", undo)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(home, "airlock.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(b.bin("airlock"), append(verb, "--config", file)...)
	cmd.Env = append(append(os.Environ(), "AIRLOCK_HOME="+home), env...)
	cmd.Stderr = os.Stderr
	session, err := connect(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("connecting to airlock mcp: %w", err)
	}
	undo.Add(session.Close)
	return &face{session: session, process: cmd.Process}, nil
}

// connect starts an MCP server on stdio.
func connect(ctx context.Context, cmd *exec.Cmd) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
}

// pooled is a configuration that keeps so many sandboxes ready for each language.
func pooled(ready int) map[string]any {
	return map[string]any{"sandbox": map[string]int{"pool": ready, "maxSandboxes": 8}}
}

// language is one that Airlock runs.
type language struct {
	id, name string   // as callers and as people write it
	trivial  string   // a program that does nothing but return
	nothing  []string // a command that does nothing at all

	fromPool, idle string // targets: of a run from the pool beside workerd, and of an idle sandbox in MB
}

func languages() []language {
	return []language{
		{"python", "Python", "result = 1", []string{"python3", "-c", "pass"}, "≤ 0.6 ×", "≤ 20"},
		{"node", "Node", "globalThis.result = 1", []string{"node", "-e", "0"}, "≤ 0.75 ×", "≤ 30"},
	}
}

// run runs a program and decodes its result into data, which may be nil.
func (f *face) run(ctx context.Context, lang language, program string, data any) error {
	answer, err := f.session.CallTool(ctx, &mcp.CallToolParams{
		Name: "run_code", Arguments: map[string]any{"language": lang.id, "code": program},
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(answer.StructuredContent)
	if err != nil {
		return err
	}
	if answer.IsError {
		return fmt.Errorf("a %s program failed: %s", lang.name, text)
	}
	if data == nil {
		return nil
	}
	return json.Unmarshal(text, &struct {
		Data any `json:"data"`
	}{data})
}

// trivialRun is how long a host waits for a trivial run.
func (f *face) trivialRun(lang language) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return timed(func() error { return f.run(ctx, lang, lang.trivial, nil) })
	}
}
