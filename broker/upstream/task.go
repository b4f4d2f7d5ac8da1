package upstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// extensionTasks is the identifier of the Tasks extension of MCP 2026-07-28.
const extensionTasks = "io.modelcontextprotocol/tasks"

// Methods of tasks. tasks/update is new in 2026-07-28, and tasks/result exists only before it.
const (
	methodGetTask    = "tasks/get"
	methodUpdateTask = "tasks/update"
	methodCancelTask = "tasks/cancel"
	methodTaskResult = "tasks/result"
)

// The statuses of a task.
const (
	taskWorking   = "working"
	taskAsks      = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// Bounds of the interval between two questions about a task. A server may suggest one within them.
const (
	minPoll     = 50 * time.Millisecond
	defaultPoll = time.Second
	maxPoll     = 10 * time.Second
)

// maxPollFailures is how many questions in a row about a task may fail because the server could not be reached.
const maxPollFailures = 5

// task is work that a server goes on with after it has answered a call (MCP 2026-07-28, Tasks extension, and MCP
// 2025-11-25, Tasks).
type task struct {
	ID       string          `json:"taskId"`
	Status   string          `json:"status"`
	Message  string          `json:"statusMessage"`
	Poll     float64         `json:"pollIntervalMs"`
	OldPoll  float64         `json:"pollInterval"` // before 2026-07-28
	Result   json.RawMessage `json:"result"`       // since 2026-07-28
	Error    *jsonrpc.Error  `json:"error"`        // since 2026-07-28
	Requests json.RawMessage `json:"inputRequests"`
}

// interval returns how long to wait before the next question.
func (t task) interval() time.Duration {
	milliseconds := max(t.Poll, t.OldPoll)
	if milliseconds <= 0 {
		return defaultPoll
	}
	return time.Duration(min(max(milliseconds, float64(minPoll/time.Millisecond)),
		float64(maxPoll/time.Millisecond))) * time.Millisecond
}

// errNoTask is returned for a task that does not have the form that MCP requires.
var errNoTask = errors.New("the server answered with a task that does not have its form")

// taskOf returns the task that a server has made for a call, or false for another result.
func (c *calling) taskOf(raw json.RawMessage) (t task, isTask bool, err error) {
	if !c.asTask && !bytes.Contains(raw, []byte(`"task"`)) && !bytes.Contains(raw, []byte(`\u`)) {
		return task{}, false, nil // it cannot be a task, even with escapes
	}
	var result struct {
		Kind json.RawMessage `json:"resultType"`
		Task json.RawMessage `json:"task"`
	}
	var kind string
	if err := strictjson.UnmarshalOpen(raw, &result); err != nil {
		return task{}, false, nil // the caller of the tool reports it
	}
	if !c.asTask && (strictjson.UnmarshalOpen(result.Kind, &kind) != nil || kind != "task") {
		return task{}, false, nil
	}
	if c.asTask {
		raw = result.Task
	}
	t, err = readTask(raw)
	return t, true, err
}

func readTask(raw json.RawMessage) (task, error) {
	var t task
	if err := strictjson.UnmarshalOpen(raw, &t); err != nil || t.ID == "" || t.Status == "" {
		return task{}, errNoTask
	}
	return t, nil
}

// needsTask reports whether a tool can only be called as a task, by a server that has tasks (MCP 2025-11-25, Tasks,
// Tool-Level Negotiation). If its server has none, the tool is called without.
func (s *server) needsTask(name string) bool {
	for _, tool := range s.describe().Tools {
		if tool.Name == name {
			return taskSupport(tool) == "required"
		}
	}
	return false
}

func taskSupport(tool catalog.Tool) string {
	if !bytes.Contains(tool.Raw, []byte("taskSupport")) {
		return ""
	}
	var definition struct {
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	if strictjson.UnmarshalOpen(tool.Raw, &definition) != nil {
		return ""
	}
	return definition.Execution.TaskSupport
}

// TaskNote receives the ID of the task that a server makes for a call.
type TaskNote struct{ id string }

// ID returns the task's ID, or "" if there is no task. It must not be called before the call has returned.
func (n *TaskNote) ID() string { return n.id }

type taskNoteKey struct{}

// NoteTask returns a context for one Call, and the note of its task.
func NoteTask(ctx context.Context) (context.Context, *TaskNote) {
	n := &TaskNote{}
	return context.WithValue(ctx, taskNoteKey{}, n), n
}

// RecordTask notes the ID of the task of the call of ctx.
func RecordTask(ctx context.Context, id string) {
	if note, ok := ctx.Value(taskNoteKey{}).(*TaskNote); ok {
		note.id = foreignText(id)
	}
}

// awaitTask asks for a task until it has ended, and returns its result. If ctx ends or the task cannot be awaited,
// it cancels the task.
func (s *server) awaitTask(ctx context.Context, c *calling, t task) (_ json.RawMessage, err error) {
	RecordTask(ctx, t.ID)
	defer func(id string) {
		if err != nil {
			go s.cancelTask(context.WithoutCancel(ctx), c, id)
		}
	}(t.ID)
	answered := map[string]bool{} // names of requests
	for failures := 0; ; {
		c.tellTask(t)
		switch t.Status {
		case taskCompleted, taskFailed, taskCancelled:
			return s.taskResult(ctx, c, t)
		case taskAsks:
			if c.asTask { // the questions come while the result is waited for
				return s.taskResult(ctx, c, t)
			}
			if err := s.updateTask(ctx, c, t, answered); err != nil {
				return nil, err
			}
		case taskWorking:
		default:
			return nil, s.failure(c.name, InvalidOutput, errNoTask.Error(), false, nil)
		}
		select {
		case <-time.After(t.interval()):
		case <-ctx.Done():
			return nil, s.classify(ctx, c.name, answer{sent: true}, ctx.Err(), c.timeout.limit)
		}
		raw, err := s.askTask(ctx, c, methodGetTask, t.ID, nil)
		lost, ok := errors.AsType[*CallError](err)
		if ok && lost.Type == TransientNetwork && failures < maxPollFailures {
			failures++
			continue
		}
		if err != nil {
			return nil, err
		}
		failures = 0
		c.timeout.Restart()
		id := t.ID
		if t, err = readTask(raw); err != nil || t.ID != id {
			return nil, s.failure(c.name, InvalidOutput, errNoTask.Error(), false, nil)
		}
	}
}

// tellTask passes the status of a task on as progress.
func (c *calling) tellTask(t task) {
	if c.relay == nil || t.Message == "" || t.Message == c.told {
		return
	}
	c.told = t.Message
	c.steps++
	params, err := json.Marshal(map[string]any{"progress": c.steps, "message": t.Message})
	if err == nil {
		c.relay.Notify("notifications/progress", params)
	}
}

// taskResult returns the result of a task that has ended or, before 2026-07-28, waits for it while the server asks.
func (s *server) taskResult(ctx context.Context, c *calling, t task) (json.RawMessage, error) {
	switch {
	case t.Status == taskCancelled:
		return nil, s.failure(c.name, ToolError, "the server has cancelled the task", false, nil)
	case c.asTask:
		raw, err := s.askTask(ctx, c, methodTaskResult, t.ID, nil)
		if err != nil {
			return nil, err
		}
		return s.accept(c.name, raw)
	case t.Status == taskCompleted:
		return s.accept(c.name, t.Result)
	case t.Error != nil:
		return nil, s.failure(c.name, ToolError, "the task has failed: "+foreignText(t.Error.Message), false, nil)
	}
	return nil, s.failure(c.name, ToolError, "the task has failed", false, nil)
}

// updateTask asks the person for what a task needs, without what they were asked before.
func (s *server) updateTask(ctx context.Context, c *calling, t task, answered map[string]bool) error {
	needs := input{required: true}
	if strictjson.UnmarshalOpen(t.Requests, &needs.requests) != nil {
		return s.failure(c.name, InvalidOutput, errNoInput.Error(), false, nil)
	}
	for name := range needs.requests {
		if answered[name] {
			delete(needs.requests, name)
		}
	}
	switch {
	case len(needs.requests) == 0:
		return nil // the server has not yet used the answers
	case c.relay == nil:
		return s.failure(c.name, ToolError, s.whyNot(needs), false, nil)
	case len(answered)+len(needs.requests) > maxRounds:
		return s.failure(c.name, ToolError, fmt.Sprintf("the task has asked for input more than %d times", maxRounds),
			false, nil)
	}
	given, err := s.answers(ctx, newExchange(c.relay, c.timeout), needs)
	if err != nil {
		return s.failure(c.name, ToolError, err.Error(), false, nil)
	}
	for name := range needs.requests {
		answered[name] = true
	}
	_, err = s.askTask(ctx, c, methodUpdateTask, t.ID, given)
	return err
}

// cancelTimeout bounds the cancellation of a task whose result nobody waits for any more.
const cancelTimeout = 5 * time.Second

// cancelTask cancels a task, if the server can be reached. The server may have ended it already.
func (s *server) cancelTask(ctx context.Context, c *calling, id string) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	s.askTask(ctx, c, methodCancelTask, id, nil)
}

// askTask sends a request about a task and returns the result.
func (s *server) askTask(ctx context.Context, c *calling, method, id string,
	more map[string]json.RawMessage) (json.RawMessage, error) {
	session, err := s.connected(ctx)
	if err != nil {
		return nil, s.notConnected(ctx, c.name, err)
	}
	params := map[string]json.RawMessage{}
	if params["taskId"], err = json.Marshal(id); err != nil {
		return nil, err
	}
	maps.Copy(params, more)
	e := newExchange(c.relay, c.timeout)
	e.method, e.params, e.taken, e.task, e.allowed = method, params, true, id, allowanceOf(ctx)
	result, err := s.exchange(ctx, session, c.name, e)
	if refused, ok := errors.AsType[*ResponseError](err); ok {
		return nil, s.failure(c.name, ToolError, "the server refused to go on with the task: "+
			foreignText(refused.Message), false, err)
	}
	return result, err
}

// headerValue returns a text as the value of a header of MCP (MCP 2026-07-28, Transports, Value Encoding).
func headerValue(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
	if plain && !strings.HasPrefix(text, "=?base64?") {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// sendTasks lets a client of the SDK send the methods of tasks.
func sendTasks(client *mcp.Client) error {
	var problems []error
	for _, method := range []string{methodGetTask, methodUpdateTask, methodCancelTask, methodTaskResult} {
		problems = append(problems, mcp.AddSendingCustomMethod[*written, *mcp.CompleteResult](client, method))
	}
	return errors.Join(problems...)
}
