// Package conformance runs the protocol's official suites against Airlock: the
// conformance suite against its MCP face and its upstream client, the Inspector's
// command line against `airlock mcp`. The file known-failures lists known failures with
// their reasons.
package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/app/server/servertest"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// noTools and noRuns are the backend of a face if only its protocol is tested.
type noTools struct{ snapshot *catalog.Snapshot }

func (n noTools) Snapshot(caller.Caller) *catalog.Snapshot { return n.snapshot }

func (noTools) Await(context.Context, ...string) error { return nil }

type noRuns struct{}

func (noRuns) Check(orchestrator.Request) error { return nil }

func (noRuns) Run(_ context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	return &orchestrator.Outcome{Envelope: orchestrator.Envelope{RunID: req.ID,
		Result: orchestrator.Result{OK: true, Data: json.RawMessage("1")}}}, nil
}

func (noRuns) EndSession(string) {}

// face returns the address of an MCP face on the loopback interface.
func face(t *testing.T) string {
	t.Helper()
	snapshot, err := catalog.NewSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := code.New(noTools{snapshot}, runs.New(noRuns{}, nil),
		code.Options{Version: "test", Principal: "user:test"})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler(servertest.LocalUser("user:test"), nil))
	return listen(t, mux)
}
