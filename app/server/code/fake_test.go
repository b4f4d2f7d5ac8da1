package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/program"
	"github.com/airlock-mcp/airlock/runner"
)

// fakeTools is a snapshot with two servers that answered and one that did not.
type fakeTools struct{ snapshot *catalog.Snapshot }

func (f fakeTools) Snapshot(caller.Caller) *catalog.Snapshot { return f.snapshot }

func (f fakeTools) Await(context.Context, ...string) error { return nil }

func newFakeTools(t testing.TB) fakeTools {
	t.Helper()
	var items []json.RawMessage
	for _, text := range []string{
		`{"name":"list_contacts","description":"List the contacts of the CRM","inputSchema":{"type":"object"},` +
			`"x-extra":{"kept": true}}`,
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

// fakeRuns makes runs by their code, for a real registry:
//
//	fail          a result with ok:false
//	wait          ends when it is cancelled
//	refuse        no run, with a hint
//	break         no run, without one
//	busy          no run, because all sandboxes are in use
//	ask N         asks N people at the same time; the data are their verdicts
//	large N       a result of N bytes
//	files         ok, with an image, a table and a large result, which are kept
//	queue         gets no sandbox before it is cancelled
//	anything else ok, and the code as data
type fakeRuns struct {
	*runs.Registry
	// waiting gets a value whenever a run has begun to wait; ended when it was cancelled.
	waiting, ended chan string
	// left gets the ID of each session that has ended.
	left      chan string
	approvals *fakeApprovals // for "ask"
	// elsewhere decides the first question of "ask" at the command line when it is closed.
	elsewhere chan struct{}
	files     *attachment.Store // for "files"
	// answer, if it is set, returns the results of calls that the host makes itself.
	answer func(orchestrator.Request) orchestrator.Result

	mu       sync.Mutex
	requests []orchestrator.Request
}

func newFakeRuns() *fakeRuns {
	f := &fakeRuns{waiting: make(chan string, 64), ended: make(chan string, 64), left: make(chan string, 64)}
	f.Registry = runs.New(executor{f}, nil)
	return f
}

// executor is fakeRuns as the registry sees it.
type executor struct{ *fakeRuns }

func (f executor) Check(req orchestrator.Request) error {
	switch {
	case len(req.Code) > program.MaxSize:
		return &orchestrator.InputError{Problem: "the code is too long", Advice: "write less"}
	case string(req.Code) == "refuse":
		return &orchestrator.InputError{Problem: "the language is unknown", Advice: "use python"}
	}
	return nil
}

func (f executor) EndSession(sessionID string) { f.left <- sessionID }

func (f executor) Run(ctx context.Context, req orchestrator.Request) (*orchestrator.Outcome, error) {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	f.mu.Unlock()
	code := string(req.Code)
	if code != "queue" {
		req.OnStart(orchestrator.Live{Printed: func() orchestrator.Printed { return printed },
			Calls: func() int { return 2 }})
	}
	switch {
	case f.answer != nil && req.Call != nil && req.Call.Host:
		outcome := outcomeOf(req.ID, f.answer(req))
		outcome.Direct = !strings.Contains(req.Call.Name, ":")
		return outcome, nil
	case code == "break":
		return nil, errors.New("the sandbox did not start")
	case code == "starve":
		return nil, fmt.Errorf("starting sandbox %q: %w", "sb-1",
			errors.Join(&os.PathError{Op: "open", Path: "/run/x", Err: syscall.EMFILE}, errors.New("and more")))
	case code == "busy":
		return nil, runner.ErrBusy
	case code == "wait", code == "queue":
		f.waiting <- code
		<-ctx.Done()
		f.ended <- code
		return nil, ctx.Err()
	case code == "fail":
		return outcomeOf(req.ID,
			orchestrator.Result{Error: &orchestrator.Failure{Type: "ValueError", Message: "no", Source: "code"}}), nil
	case strings.HasPrefix(code, "ask"):
		return f.ask(ctx, req)
	case code == "files":
		return f.attach(req)
	case strings.HasPrefix(code, "large"):
		data, err := json.Marshal(strings.Repeat("ä", 25_000))
		return outcomeOf(req.ID, orchestrator.Result{OK: true, Data: data}), err
	}
	data, err := server.Encode(code)
	return outcomeOf(req.ID, orchestrator.Result{OK: true, Data: data}), err
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
				Asking: approval.Asking{RunID: req.ID, SessionID: req.Caller.Session},
				Subject: approval.Subject{
					CodeHash: canon.Digest(req.Code), ServerID: "crm", ToolName: "delete_contact",
					Arguments: json.RawMessage(`{"id": 7}`),
				},
			}
			open, decided := context.WithCancel(ctx)
			defer decided()
			if f.elsewhere != nil && i == 0 {
				asking.Go(func() { <-f.elsewhere; decided() })
			}
			v, err := asker.Ask(open, q)
			said[i] = fmt.Sprintf("%v, for %v, by %s, error %v", v.Answer, v.For, v.By, err)
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		f.ended <- string(req.Code)
	}
	data, err := server.Encode(said)
	return outcomeOf(req.ID, orchestrator.Result{OK: true, Data: data}), err
}

// everyone is a caller who sees all runs.
var everyone = caller.Caller{Principal: "test", Kind: caller.Local, Session: "test",
	Scopes: []string{caller.ScopeRun, caller.ScopeAllRuns}}

// outcome waits for a run of any owner and returns its outcome.
func (f *fakeRuns) outcome(t testing.TB, id string) *orchestrator.Outcome {
	t.Helper()
	run, ok := f.Get(everyone, id)
	if !ok {
		t.Fatalf("there is no run %q", id)
	}
	outcome, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// runIDOf returns the run ID of an answer.
func runIDOf(res *mcp.CallToolResult) string {
	answer, _ := res.StructuredContent.(map[string]any)
	id, _ := answer["run_id"].(string)
	return id
}

// lastRequest returns the newest request that became a run.
func (f *fakeRuns) lastRequest() orchestrator.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[len(f.requests)-1]
}

// printed is what every run prints.
var printed = orchestrator.Printed{Stdout: "printed <>&\n", Stderr: strings.Repeat("x", maxLog+100)}

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
		Printed: printed,
	}
}
