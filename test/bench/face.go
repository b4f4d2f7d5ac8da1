package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// face is a session with `airlock mcp`, as an agent host has one.
type face struct{ session *mcp.ClientSession }

// openFace starts an Airlock that keeps so many sandboxes ready.
func openFace(ctx context.Context, at place, pool int) (*face, error) {
	dir, err := os.MkdirTemp("", "airlock-bench-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "airlock.yaml")
	text := fmt.Sprintf("sandbox: {pool: %d}\n", pool)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, at.bin("airlock"), "mcp", "--config", config)
	cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+at.home)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to airlock mcp: %w", err)
	}
	return &face{session: session}, os.RemoveAll(dir)
}

func (f *face) close() error { return f.session.Close() }

// programs do nothing but return.
var programs = map[string]string{"python": "result = 1", "node": "globalThis.result = 1"}

// run makes one trivial run and returns how long the host waited for it.
func (f *face) run(ctx context.Context, language string) (time.Duration, error) {
	started := time.Now()
	answer, err := f.session.CallTool(ctx, &mcp.CallToolParams{
		Name: "run_code", Arguments: map[string]any{"language": language, "code": programs[language]},
	})
	took := time.Since(started)
	switch {
	case err != nil:
		return 0, err
	case answer.IsError:
		return 0, errors.New("a trivial run failed")
	}
	return took, nil
}
