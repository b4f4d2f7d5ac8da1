// Package conformance runs the protocol's official suites against Airlock's MCP
// face: the conformance suite over HTTP, the Inspector's command line over
// stdio. What is known to fail stands in expected-failures.yaml with its reason.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/testenv"
)

// noTools and noRuns stand behind a face whose protocol alone is tested.
type noTools struct{ snapshot *catalog.Snapshot }

func (n noTools) Snapshot(caller.Caller) *catalog.Snapshot { return n.snapshot }

func (noTools) Await(context.Context, ...string) error { return nil }

type noRuns struct{}

func (noRuns) Check(orchestrator.Request) error { return nil }

func (noRuns) Run(_ context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	return &orchestrator.Outcome{Envelope: orchestrator.Envelope{RunID: req.ID, Result: orchestrator.Result{OK: true, Data: json.RawMessage("1")}}}, nil
}

func (noRuns) EndSession(string) {}

// serve returns the address of an MCP face on the loopback interface.
func serve(t *testing.T) string {
	t.Helper()
	snapshot, err := catalog.NewSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(noTools{snapshot}, runs.New(noRuns{}, nil), server.Options{Version: "test", Principal: "user:test"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler(server.LocalUser("user:test")))
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	t.Cleanup(func() {
		h.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving: got %v, want %v", err, http.ErrServerClosed)
		}
	})
	return "http://" + l.Addr().String() + "/mcp"
}

// suites returns the directory with the suites and the Node to run them with,
// which need a newer one than the machine may have. They are installed once,
// as package-lock.json says.
func suites(t *testing.T) (dir, node string) {
	t.Helper()
	testenv.Sandbox(t) // asked for together with everything that needs to be set up
	dir = filepath.Join(testenv.RepoRoot(t), "test", "conformance")
	node = filepath.Join(dir, "node_modules", "node-linux-"+map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH], "bin", "node")
	if _, err := os.Stat(node); err == nil {
		return dir, node
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("installing the suites: %v\n%s", err, out)
	}
	return dir, node
}

// Every scenario passes that is not expected to fail, and every one that is
// expected to fail does: the suite reports both as errors.
func TestConformance(t *testing.T) {
	dir, node := suites(t)
	url := serve(t)
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			suite := exec.CommandContext(t.Context(), node,
				filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"),
				"server", "--url", url, "--suite", "all", "--spec-version", version,
				"--expected-failures", filepath.Join(dir, "expected-failures.yaml"), "--output-dir", t.TempDir())
			suite.Dir = t.TempDir()
			if out, err := suite.CombinedOutput(); err != nil {
				t.Errorf("the suite failed: %v\n%s", err, out)
			}
		})
	}
}
