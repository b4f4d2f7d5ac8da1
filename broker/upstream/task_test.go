package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// worker is a server whose only tool works as a task (MCP 2026-07-28, Tasks extension).
type worker struct {
	t *testing.T

	mu        sync.Mutex
	states    []map[string]any // what tasks/get answers, the last one for ever
	polls     int
	names     []string // Mcp-Name headers of requests about the task
	answers   []string // what tasks/update was given
	cancelled chan struct{}
	declared  bool // the client has declared the extension
}

type taskParams struct {
	mcp.ParamsBase
	TaskID         string          `json:"taskId"`
	InputResponses json.RawMessage `json:"inputResponses"`
}

// anyResult is a result with any members.
type anyResult struct {
	mcp.ResultBase
	members map[string]any
}

func (r *anyResult) MarshalJSON() ([]byte, error) { return json.Marshal(r.members) }

const taskID = "task/ü 1"

func (w *worker) state(status string, more map[string]any) map[string]any {
	all := map[string]any{"taskId": taskID, "status": status, "createdAt": "2026-11-25T10:30:00Z",
		"lastUpdatedAt": "2026-11-25T10:30:00Z", "ttlMs": nil, "pollIntervalMs": 1}
	for name, value := range more {
		all[name] = value
	}
	return all
}

func (w *worker) next() map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.states[min(w.polls, len(w.states)-1)]
	w.polls++
	return state
}

func (w *worker) start() upstream.Config {
	w.cancelled = make(chan struct{}, 10)
	s := mcp.NewServer(&mcp.Implementation{Name: "worker", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "work", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errors.New("unused")
		})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if capabilities := call.ClientCapabilities(); capabilities != nil {
				_, w.declared = capabilities.Extensions["io.modelcontextprotocol/tasks"]
			}
			return &anyResult{members: w.state("working", map[string]any{"resultType": "task"})}, nil
		}
	})
	answer := func(handle func(p *taskParams) (map[string]any, error)) func(context.Context, *mcp.ServerSession,
		*taskParams) (*anyResult, error) {
		return func(_ context.Context, _ *mcp.ServerSession, p *taskParams) (*anyResult, error) {
			if p.TaskID != taskID {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Task not found"}
			}
			members, err := handle(p)
			if err != nil {
				return nil, err
			}
			members["resultType"] = "complete"
			return &anyResult{members: members}, nil
		}
	}
	for method, handle := range map[string]func(p *taskParams) (map[string]any, error){
		"tasks/get": func(*taskParams) (map[string]any, error) {
			if state := w.next(); state != nil {
				return state, nil
			}
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Task has expired"}
		},
		"tasks/update": func(p *taskParams) (map[string]any, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.answers = append(w.answers, string(p.InputResponses))
			return map[string]any{}, nil
		},
		"tasks/cancel": func(*taskParams) (map[string]any, error) {
			w.cancelled <- struct{}{}
			return map[string]any{}, nil
		},
	} {
		if err := mcp.AddReceivingCustomMethod(s, method, answer(handle)); err != nil {
			w.t.Fatal(err)
		}
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Mcp-Method"), "tasks/") {
			w.mu.Lock()
			w.names = append(w.names, r.Header.Get("Mcp-Name"))
			w.mu.Unlock()
		}
		handler.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(server.Close)
	return upstream.Config{ID: "worker", URL: server.URL, Elicitation: true}
}

func completed(text string) map[string]any {
	return map[string]any{"result": map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}}
}

// A task is awaited: its progress reaches the host, its questions the person, once, and its result the caller.
func TestTasksOfServersAreAwaited(t *testing.T) {
	w := &worker{t: t}
	question := map[string]any{"inputRequests": map[string]any{"q": map[string]any{"method": "elicitation/create",
		"params": map[string]any{"mode": "form", "message": "Who?", "requestedSchema": form}}}}
	w.states = []map[string]any{
		w.state("working", map[string]any{"statusMessage": "half"}),
		w.state("working", map[string]any{"statusMessage": "half"}),
		w.state("input_required", question), w.state("input_required", question),
		w.state("working", map[string]any{"statusMessage": "nearly"}),
		w.state("completed", completed("done")),
	}
	set := connect(t, nil, w.start())
	p := &person{answer: upstream.ElicitationAnswer{Action: "accept", Content: json.RawMessage(`{"name":"Ann"}`)}}
	ctx, note := upstream.NoteTask(t.Context())
	got, err := set.CallFor(ctx, p, "worker", "work", nil)
	if err != nil || text(t, got) != "done" {
		t.Fatalf("got %s, %v, want the task's result", got, err)
	}
	if !w.declared || note.ID() != taskID {
		t.Errorf("declared: %v, noted %q, want the extension declared and the ID %q", w.declared, note.ID(), taskID)
	}
	if want := []string{`{"q":{"action":"accept","content":{"color":"green","name":"Ann"}}}`}; len(p.asked) != 1 ||
		fmt.Sprint(w.answers) != fmt.Sprint(want) {
		t.Errorf("asked %+v, the server got %q, want one question and %q", p.asked, w.answers, want)
	}
	if want := []string{`notifications/progress {"message":"half","progress":1}`,
		`notifications/progress {"message":"nearly","progress":2}`}; fmt.Sprint(p.notices) != fmt.Sprint(want) {
		t.Errorf("progress %q, want %q", p.notices, want)
	}
	for _, name := range w.names {
		if name != "=?base64?dGFzay/DvCAx?=" {
			t.Errorf("the header Mcp-Name is %q, want the task's ID", name)
		}
	}
	if len(w.cancelled) > 0 {
		t.Error("a task that has ended was cancelled")
	}
}

// A task that ends badly is an error of its call. A task that cannot be awaited any more is cancelled.
func TestTasksOfServersEnd(t *testing.T) {
	w := &worker{}
	question := map[string]any{"inputRequests": map[string]any{"q": map[string]any{"method": "elicitation/create",
		"params": map[string]any{"message": "Who?", "requestedSchema": form}}}}
	for name, test := range map[string]struct {
		states    []map[string]any
		kind      upstream.ErrorType
		want      string
		cancelled bool
	}{
		"failed": {[]map[string]any{w.state("failed", map[string]any{"error": map[string]any{"code": -32603,
			"message": "no disk"}})}, upstream.ToolError, "the task has failed: no disk", false},
		"cancelled by the server": {[]map[string]any{w.state("cancelled", nil)}, upstream.ToolError,
			"the server has cancelled the task", false},
		"forgotten": {[]map[string]any{nil}, upstream.ToolError, "Task has expired", true},
		"of an unknown status": {[]map[string]any{w.state("sleeping", nil)}, upstream.InvalidOutput,
			"does not have its form", true},
		"another task's": {[]map[string]any{{"taskId": "t2", "status": "working"}}, upstream.InvalidOutput, "form",
			true},
		"without a person": {[]map[string]any{w.state("input_required", question)}, upstream.ToolError, "ask a person",
			true},
		"without a result": {[]map[string]any{w.state("completed", nil)}, upstream.InvalidOutput,
			"other than a tool result",
			false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &worker{t: t, states: test.states}
			set := connect(t, nil, w.start())
			_, err := set.Call(t.Context(), "worker", "work", nil)
			var failed *upstream.CallError
			if !errors.As(err, &failed) || failed.Type != test.kind || !strings.Contains(failed.Message, test.want) {
				t.Fatalf("got %v, want %s: %s", err, test.kind, test.want)
			}
			if test.cancelled {
				<-w.cancelled
			}
		})
	}
}

// A task may take longer than the time limit of a call as long as its server answers. When the call is cancelled, so
// is the task.
func TestTasksOutliveTheTimeLimitOfACall(t *testing.T) {
	w := &worker{t: t}
	w.states = []map[string]any{w.state("working", nil)}
	config := w.start()
	config.CallTimeout = 500 * time.Millisecond
	set := connect(t, nil, config)
	outer, _, stop := upstream.WithPausableTimeout(t.Context(), config.CallTimeout)
	defer stop()
	ctx, cancel := context.WithCancel(outer)
	go func() {
		defer cancel()
		for polls := 0; polls < 30; time.Sleep(10 * time.Millisecond) { // each takes 50 ms or more
			w.mu.Lock()
			polls = w.polls
			w.mu.Unlock()
		}
	}()
	if _, err := set.Call(ctx, "worker", "work", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	<-w.cancelled
}

// The published server has a tool that can only be called as a task of MCP 2025-11-25.
func TestServerEverythingWorksAsATask(t *testing.T) {
	set := connect(t, nil, upstream.Config{ID: "everything", Command: "node", Elicitation: true,
		Args: []string{realServer(t, "server-everything")}})
	p := &person{answer: upstream.ElicitationAnswer{Action: "accept",
		Content: json.RawMessage(`{"interpretation":"programming"}`)}}
	got, err := set.CallFor(t.Context(), p, "everything", "simulate-research-query",
		json.RawMessage(`{"topic":"python","ambiguous":true}`))
	if err != nil || !strings.Contains(text(t, got), "# Research Report: python (programming)") {
		t.Errorf("got %s, %v, want the report", got, err)
	}
	if len(p.asked) != 1 || len(p.notices) == 0 {
		t.Errorf("asked %+v, noticed %q, want one question and progress", p.asked, p.notices)
	}
}

// A tool that must be called as a task is called so only if its server runs tools as tasks (MCP 2025-11-25, Tasks,
// Tool-Level Negotiation).
func TestServersWithoutTasksGetNone(t *testing.T) {
	for declared, want := range map[string]bool{`{"tools":{}}`: false, `{"tools":{},"tasks":{"list":{}}}`: false,
		`{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`: true} {
		asTask := false
		web := httptest.NewServer(jsonHandler(func(method string, params json.RawMessage) string {
			switch method {
			case "initialize":
				return strings.Replace(plainAnswer(method), `{"tools":{}}`, declared, 1)
			case "tools/list":
				return strings.Replace(plainAnswer(method), `"name":"t"`,
					`"name":"t","execution":{"taskSupport":"required"}`, 1)
			case "tools/call":
				asTask = strings.Contains(string(params), `"task":{}`)
				return `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`
			}
			return plainAnswer(method)
		}))
		defer web.Close()
		set := connect(t, nil, upstream.Config{ID: "x", URL: web.URL})
		if _, err := set.Call(t.Context(), "x", "t", nil); (err != nil) != want || asTask != want {
			t.Errorf("%s: called as a task: %v (%v), want %v", declared, asTask, err, want)
		}
	}
}
