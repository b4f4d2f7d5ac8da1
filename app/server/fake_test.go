package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
)

// fakeTools is a snapshot with two servers that answered and one that did not.
type fakeTools struct{ snapshot *catalog.Snapshot }

func (f fakeTools) Snapshot() *catalog.Snapshot { return f.snapshot }

func newFakeTools(t testing.TB) fakeTools {
	t.Helper()
	var items []json.RawMessage
	for _, text := range []string{
		`{"name":"list_contacts","description":"List the contacts of the CRM","inputSchema":{"type":"object"},"x-extra":{"kept": true}}`,
		`{"name":"delete_contact","description":"Delete a contact for ever","inputSchema":{"type":"object"}}`,
	} {
		items = append(items, json.RawMessage(text))
	}
	tools, warnings := catalog.ParseTools("crm", items)
	if len(tools) != 2 || len(warnings) != 0 {
		t.Fatalf("got %d tools and warnings %v, want 2 and none", len(tools), warnings)
	}
	snapshot, err := catalog.NewSnapshot([]catalog.Server{
		{ID: "crm", Tools: tools},
		{ID: "files", Problem: "the program npx was not found"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fakeTools{snapshot}
}

// fakeRuns answers runs by their code:
//
//	fail          a result with ok:false
//	wait          ends when it is cancelled
//	refuse        no run, with a hint
//	break         no run, without one
//	ask N         asks N people at the same time; the data are their verdicts
//	large N       a result of N bytes
//	anything else ok, and the code as data
type fakeRuns struct {
	// waiting gets a value whenever a run has begun to wait; ended when it was cancelled.
	waiting, ended chan string
	// left gets the ID of each session that has ended.
	left      chan string
	approvals *fakeApprovals // for "ask"

	mu       sync.Mutex
	requests []orchestrator.Request
	started  map[string]orchestrator.Request // runs in the background, by ID
	done     map[string]bool
}

func newFakeRuns() *fakeRuns {
	return &fakeRuns{
		waiting: make(chan string, 16), ended: make(chan string, 16), left: make(chan string, 64),
		started: map[string]orchestrator.Request{}, done: map[string]bool{},
	}
}

func (f *fakeRuns) Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	code := string(req.Code)
	switch {
	case len(code) > orchestrator.MaxCode:
		return nil, &orchestrator.InputError{Problem: "the code is too long", Advice: "write less"}
	case code == "refuse":
		return nil, &orchestrator.InputError{Problem: "the language is unknown", Advice: "use python"}
	case code == "break":
		return nil, errors.New("the sandbox did not start")
	case code == "wait":
		f.waiting <- code
		<-ctx.Done()
		f.ended <- code
		return nil, ctx.Err()
	case code == "fail":
		return outcomeOf("run_failed", orchestrator.Result{Error: &orchestrator.Failure{Type: "ValueError", Message: "no", Source: "code"}}), nil
	case strings.HasPrefix(code, "ask"):
		return f.ask(ctx, req)
	case strings.HasPrefix(code, "large"):
		data, err := json.Marshal(strings.Repeat("ä", 25_000))
		return outcomeOf("run_large", orchestrator.Result{OK: true, Data: data}), err
	}
	data, err := encode(code)
	return outcomeOf("run_done", orchestrator.Result{OK: true, Data: data}), err
}

func (f *fakeRuns) EndSession(sessionID string) { f.left <- sessionID }

func requestOf(session, code string) orchestrator.Request {
	return orchestrator.Request{Language: "python", Code: []byte(code), Caller: caller.Caller{Principal: "ann", Kind: caller.Local, Session: session}}
}

func (f *fakeRuns) ask(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	var n int
	if _, err := fmt.Sscanf(string(req.Code), "ask %d", &n); err != nil {
		return nil, err
	}
	said := make([]string, n)
	var asking sync.WaitGroup
	for i := range n {
		asking.Go(func() {
			asker := f.approvals.asker(req.Caller.Session)
			if asker == nil {
				said[i] = "nobody"
				return
			}
			q := approval.Question{
				ID: fmt.Sprintf("apr_%d", i), Expires: time.Now().Add(time.Hour),
				Subject: approval.Subject{
					CodeHash: canon.Digest(req.Code), ServerID: "crm", ToolName: "delete_contact", Arguments: json.RawMessage(`{"id": 7}`),
				},
			}
			v, err := asker.Ask(ctx, q)
			said[i] = fmt.Sprintf("%v, for run %v, by %s, error %v", v.Answer, v.ForRun, v.By, err)
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		f.ended <- string(req.Code)
	}
	data, err := encode(said)
	return outcomeOf("run_asked", orchestrator.Result{OK: true, Data: data}), err
}

// fakeApprovals is a desk that only knows its channels.
type fakeApprovals struct {
	mu     sync.Mutex
	askers map[string]approval.Asker
}

func (f *fakeApprovals) Register(sessionID string, a approval.Asker) (unregister func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.askers[sessionID] = a
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.askers, sessionID)
	}
}

func (f *fakeApprovals) asker(sessionID string) approval.Asker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.askers[sessionID]
}

func outcomeOf(id string, result orchestrator.Result) *orchestrator.Outcome {
	return &orchestrator.Outcome{
		Envelope: orchestrator.Envelope{
			RunID: id, TraceID: "0123456789abcdef0123456789abcdef", ToolName: "python-runner", ToolVersion: "test",
			InputDigest: "sha256:in", OutputDigest: "sha256:out", SandboxImage: "python@sha256:image",
			ApprovalState: string(approval.NotRequired), Result: result,
		},
		Stdout: "printed <>&\n", Stderr: strings.Repeat("x", maxLog+100),
	}
}

func (f *fakeRuns) Start(_ context.Context, req orchestrator.Request) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if string(req.Code) == "refuse" {
		return "", &orchestrator.InputError{Problem: "the language is unknown", Advice: "use python"}
	}
	f.started["run_background"] = req
	return "run_background", nil
}

func (f *fakeRuns) Get(sessionID, runID string) (orchestrator.Status, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	req, ok := f.started[runID]
	switch {
	case !ok || req.Caller.Session != sessionID:
		return orchestrator.Status{}, false
	case f.done[runID]:
		return orchestrator.Status{RunID: runID, State: orchestrator.StateDone, Outcome: outcomeOf(runID, orchestrator.Result{OK: true, Data: json.RawMessage("1")})}, true
	}
	return orchestrator.Status{RunID: runID, State: orchestrator.StateRunning}, true
}

func (f *fakeRuns) Cancel(sessionID, runID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	req, ok := f.started[runID]
	if !ok || req.Caller.Session != sessionID || f.done[runID] {
		return false
	}
	f.done[runID] = true
	return true
}

func (f *fakeRuns) finish(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done[runID] = true
}

// lastRequest returns the newest request that Run got.
func (f *fakeRuns) lastRequest() orchestrator.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[len(f.requests)-1]
}
