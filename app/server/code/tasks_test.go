package code

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/app/runs"
)

// taskHost sends requests of MCP 2026-07-28 as lines.
type taskHost struct {
	*testing.T
	in           io.Writer
	out          *bufio.Reader
	capabilities string
	sent         int
}

// tasksAndForms is a host that has tasks and whose person can be asked.
const tasksAndForms = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func newTaskHost(t *testing.T, s *Server, capabilities string) *taskHost {
	out, in := serve(t, s)
	return &taskHost{T: t, in: in, out: bufio.NewReader(out), capabilities: capabilities}
}

// taskAnswer has what the tests read of an answer.
type taskAnswer struct {
	Error *struct {
		Code int64           `json:"code"`
		Data json.RawMessage `json:"data"`
	} `json:"error"`
	Result struct {
		ResultType        string                     `json:"resultType"`
		TaskID            string                     `json:"taskId"`
		Status            string                     `json:"status"`
		StatusMessage     string                     `json:"statusMessage"`
		CreatedAt         time.Time                  `json:"createdAt"`
		TTL               *int64                     `json:"ttlMs"`
		Poll              int64                      `json:"pollIntervalMs"`
		InputRequests     map[string]json.RawMessage `json:"inputRequests"`
		StructuredContent map[string]any             `json:"structuredContent"`
		Result            struct {
			StructuredContent map[string]any `json:"structuredContent"`
			IsError           bool           `json:"isError"`
			ResultType        string         `json:"resultType"`
		} `json:"result"`
	} `json:"result"`
}

func (h *taskHost) asks(method, params string) (answer taskAnswer) {
	h.Helper()
	h.sent++
	send(h, h.in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":`+
		`{"name":"host","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}}}`, h.sent, method, params,
		h.capabilities))
	for {
		line, err := h.out.ReadBytes('\n')
		if err != nil {
			h.Fatal(err)
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			h.Fatal(err)
		}
		if strings.Contains(string(line), fmt.Sprintf(`"id":%d`, h.sent)) {
			return answer
		}
	}
}

func (h *taskHost) runs(code string, background bool) taskAnswer {
	h.Helper()
	return h.asks("tools/call", fmt.Sprintf(
		`"name":"run_code","arguments":{"language":"python","code":%q,"background":%t}`, code, background))
}

func (h *taskHost) task(id string) taskAnswer {
	h.Helper()
	return h.asks("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
}

// settles asks for a task until it has a status.
func (h *taskHost) settles(id, status string) taskAnswer {
	h.Helper()
	for {
		if got := h.task(id); got.Error != nil || got.Result.Status == status {
			return got
		}
	}
}

// A run in the background is a task for a host that has tasks. Its outcome is what the call would have answered.
func TestARunInTheBackgroundIsATask(t *testing.T) {
	s, fake := newServer(t)
	h := newTaskHost(t, s, tasksAndForms)
	started := h.runs("x = 1", true).Result
	if started.ResultType != "task" || !strings.HasPrefix(started.TaskID, "run_") || started.Status != "working" ||
		started.CreatedAt.IsZero() || started.Poll <= 0 {
		t.Fatalf("got %+v, want a task", started)
	}
	fake.outcome(t, started.TaskID)
	got := h.settles(started.TaskID, "completed").Result
	if got.ResultType != "complete" || got.Result.ResultType != "complete" ||
		got.Result.StructuredContent["data"] != "x = 1" ||
		got.TTL == nil || *got.TTL < runs.KeepFinished.Milliseconds() {
		t.Errorf("got %+v, want the outcome, and how long it is kept", got)
	}
	failed := h.settles(h.runs("fail", true).Result.TaskID, "completed").Result
	if !failed.Result.IsError || failed.Status != "completed" {
		t.Errorf("got %+v, want a completed task whose result is an error", failed)
	}
}

// A run that ends soon is not a task. One that takes longer is, even if it is not in the background.
func TestASlowRunBecomesATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, fake := newServer(t)
		h := newTaskHost(t, s, tasksAndForms)
		if got := h.runs("x = 1", false).Result; got.ResultType != "complete" ||
			got.StructuredContent["data"] != "x = 1" {
			t.Errorf("got %+v, want the outcome of the run", got)
		}
		began := time.Now()
		started := h.runs("wait", false).Result
		<-fake.waiting
		if started.ResultType != "task" || time.Since(began) != taskAfter {
			t.Fatalf("got %+v after %v, want a task after %v", started, time.Since(began), taskAfter)
		}
		if got := h.task(started.TaskID).Result; got.Status != "working" ||
			!strings.Contains(got.StatusMessage, "running") {
			t.Errorf("got %+v, want a running task", got)
		}
		if got := h.asks("tasks/cancel", fmt.Sprintf(`"taskId":%q`, started.TaskID)); got.Error != nil ||
			got.Result.ResultType != "complete" {
			t.Errorf("got %+v, want an acknowledgement", got)
		}
		if got := h.settles(started.TaskID, "cancelled"); got.Error != nil {
			t.Errorf("got %+v, want the task cancelled", got)
		}
	})
}

// The questions of a run are those of its task, each until it is answered.
func TestATaskAsksThePerson(t *testing.T) {
	s, _ := newAskingServer(t)
	h := newTaskHost(t, s, tasksAndForms)
	started := h.runs("ask 2", false).Result
	if started.ResultType != "task" {
		t.Fatalf("got %+v, want a task", started)
	}
	id := started.TaskID
	for got := h.settles(id, "input_required").Result; len(got.InputRequests) < 2; {
		got = h.task(id).Result
	}
	answer := func(question, decision string) {
		t.Helper()
		if got := h.asks("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept",`+
			`"content":{"decision":%q}}}`, id, question, decision)); got.Error != nil {
			t.Fatalf("got %+v, want an acknowledgement", got.Error)
		}
	}
	answer("apr_0", choiceOnce)
	answer("apr_0", choiceDeny) // answered already
	answer("apr_9", choiceDeny) // never asked
	if got := h.task(id).Result; len(got.InputRequests) != 1 || got.InputRequests["apr_1"] == nil {
		t.Errorf("got %+v, want the other question only", got)
	}
	answer("apr_1", choiceDeny)
	got := h.settles(id, "completed").Result
	data := fmt.Sprint(got.Result.StructuredContent["data"])
	if !strings.Contains(data, "approved, for call, by user:ann, through host") || !strings.Contains(data, "denied") {
		t.Errorf("got %s, want both answers", data)
	}
}

// A host without tasks gets no task and may not ask for one. Nobody gets a task of somebody else.
func TestTasksAreRefused(t *testing.T) {
	s, fake := newServer(t)
	with := newTaskHost(t, s, tasksAndForms)
	without := newTaskHost(t, s, `{}`)
	id, _ := without.runs("x = 1", true).Result.StructuredContent["run_id"].(string)
	if id == "" {
		t.Fatal("got no run for a host without tasks")
	}
	fake.outcome(t, id)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		got := without.asks(method, fmt.Sprintf(`"taskId":%q`, id))
		if got.Error == nil || got.Error.Code != -32021 ||
			!strings.Contains(string(got.Error.Data), `"io.modelcontextprotocol/tasks"`) {
			t.Errorf("%s: got %+v, want the missing capability", method, got.Error)
		}
		for name, params := range map[string]string{"another session's": fmt.Sprintf(`"taskId":%q`, id),
			"unknown": `"taskId":"run_0"`, "no ID": `"x":1`, "no text": `"taskId":[1]`} {
			if got := with.asks(method, params); got.Error == nil || got.Error.Code != -32602 {
				t.Errorf("%s, %s: got %+v, want invalid params", method, name, got)
			}
		}
	}
}
