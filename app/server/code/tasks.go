package code

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// extensionTasks is the identifier of the Tasks extension of MCP 2026-07-28. A host that declares it gets a task for
// a run in the background, one that waits for a person and one that takes longer than taskAfter. The task has the ID
// of the run.
const extensionTasks = "io.modelcontextprotocol/tasks"

// taskAfter is how long the outcome of a run is waited for before the answer is a task.
const taskAfter = 5 * time.Second

// taskPoll is the suggested interval of tasks/get.
const taskPoll = time.Second

// codeMissingCapability is the error of a request that needs a capability which its client has not declared (MCP
// 2026-07-28, Error Codes).
const codeMissingCapability = -32021

// The statuses of a task.
const (
	taskWorking   = "working"
	taskAsks      = "input_required"
	taskCompleted = "completed"
	taskCancelled = "cancelled"
)

// task is a run as a task. All times are in RFC 3339.
type task struct {
	mcp.ResultBase

	ResultType string              `json:"resultType"` // "task" if it is the answer to a call, otherwise "complete"
	ID         string              `json:"taskId"`
	Status     string              `json:"status"`
	Message    string              `json:"statusMessage,omitempty"`
	Created    time.Time           `json:"createdAt"`
	Updated    time.Time           `json:"lastUpdatedAt"`
	TTL        *int64              `json:"ttlMs"` // milliseconds from Created; nil until the run is done
	Poll       int64               `json:"pollIntervalMs"`
	Requests   mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result     *taskResult         `json:"result,omitempty"`
}

// taskResult is the result of a call within a task.
type taskResult struct{ *mcp.CallToolResult }

// MarshalJSON adds the type of the result, which the SDK adds only to an answer.
func (r *taskResult) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(r.CallToolResult)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"complete",`), text[1:]...), nil // it has content
}

// acknowledged is the answer to tasks/update and tasks/cancel.
type acknowledged struct {
	mcp.ResultBase

	ResultType string `json:"resultType"`
}

// errNoTask is the error for the ID of a run that does not exist or that the caller may not see.
var errNoTask = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
	Message: "there is no such task, or it is no longer kept"}

// hasTasks reports whether the host has declared the extension in a request.
func hasTasks(version string, capabilities *mcp.ClientCapabilities) bool {
	if version < server.Stateless || capabilities == nil {
		return false
	}
	_, declared := capabilities.Extensions[extensionTasks]
	return declared
}

type taskKey struct{}

// tasks is the middleware that offers tasks to hosts of 2026-07-28, answers the methods of tasks, and answers a call
// with the task that it has become.
func (s *Server) tasks(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch request := req.(type) {
		case *mcp.CallToolRequest:
			var made *task
			res, err := next(context.WithValue(ctx, taskKey{}, &made), method, req)
			if err == nil && made != nil {
				return made, nil
			}
			return res, err
		case *mcp.ServerRequest[*server.TaskParams]:
			return s.answerTask(ctx, method, request)
		}
		res, err := next(ctx, method, req)
		if discovered, ok := res.(*mcp.DiscoverResult); ok && err == nil {
			capabilities := *discovered.Capabilities
			capabilities.Extensions = maps.Clone(capabilities.Extensions)
			capabilities.AddExtension(extensionTasks, nil)
			discovered.Capabilities = &capabilities
		}
		return res, err
	}
}

// addTaskMethods makes the SDK read the params of the methods of tasks. The middleware answers them.
func (s *Server) addTaskMethods() error {
	var problems []error
	for _, method := range server.TaskMethods {
		problems = append(problems, mcp.AddReceivingCustomMethod(s.mcp, method,
			func(context.Context, *mcp.ServerSession, *server.TaskParams) (*acknowledged, error) {
				return nil, errNoTask
			}))
	}
	return errors.Join(problems...)
}

// answerTask answers a request about a task.
func (s *Server) answerTask(ctx context.Context, method string,
	req *mcp.ServerRequest[*server.TaskParams]) (mcp.Result, error) {
	params := req.Params
	who := s.Caller(ctx, req)
	if !who.Known() {
		return nil, server.ErrUnknownCaller
	}
	version := req.ProtocolVersion()
	if !hasTasks(version, req.ClientCapabilities()) {
		return nil, &jsonrpc.Error{Code: codeMissingCapability, Message: "the client has not declared tasks",
			Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + extensionTasks + `":{}}}}`)}
	}
	run, ok := s.runs.Get(who, params.TaskID)
	if !ok {
		return nil, errNoTask
	}
	switch method {
	case server.MethodCancelTask:
		s.runs.Cancel(who, run.ID())
		return &acknowledged{ResultType: "complete"}, nil
	case server.MethodUpdateTask:
		if s.parking != nil {
			s.parking.answer(run.ID(), who.Owner(), params.InputResponses)
		}
		return &acknowledged{ResultType: "complete"}, nil
	}
	return s.taskOf(ctx, run, who, version)
}

// taskOf returns the task of a run as it is now.
func (s *Server) taskOf(ctx context.Context, run *runs.Run, who caller.Caller, version string) (*task, error) {
	status := run.Status()
	t := &task{ResultType: "complete", ID: status.ID, Status: taskWorking, Created: status.Asked.UTC(),
		Updated: time.Now().UTC(), Poll: taskPoll.Milliseconds()}
	if status.State == runs.Done {
		kept := status.Ended.Sub(status.Asked).Milliseconds() + runs.KeepFinished.Milliseconds()
		t.TTL, t.Updated, t.Status = &kept, status.Ended.UTC(), taskCompleted
		if status.Cancelled {
			t.Status = taskCancelled
			return t, nil
		}
		result, err := s.resultOf(ctx, status, version)
		if err != nil {
			return nil, err
		}
		s.CleanResult(result)
		t.Result = &taskResult{result}
		return t, nil
	}
	if s.parking != nil {
		t.Requests = s.parking.questions(run.ID(), who.Owner())
	}
	if len(t.Requests) > 0 {
		t.Status = taskAsks
	}
	t.Message = s.Gate().Text(standing(status, time.Now(), len(t.Requests) > 0))
	return t, nil
}

// resultOf returns what the call would have answered.
func (s *Server) resultOf(ctx context.Context, status runs.Status, version string) (*mcp.CallToolResult, error) {
	if status.Err != nil {
		return refused(notStarted(status.ID, status.Err)), nil
	}
	return s.finished(ctx, status.Outcome, version)
}

// runAsTask makes a run for a host that has tasks. The call ends with the outcome of the run, or with a task.
func (s *Server) runAsTask(ctx context.Context, c call, req orchestrator.Request,
	told *notices) (*mcp.CallToolResult, error) {
	run, asks, err := s.startTask(ctx, c, req)
	if err != nil {
		return nil, err
	}
	if !req.Background {
		stop := s.reportProgress(ctx, c.request, run, told)
		soon := endsSoon(ctx, run, asks)
		stop()
		if soon {
			return s.finish(ctx, c, req, run)
		}
	}
	made, err := s.taskOf(ctx, run, c.caller, c.request.ProtocolVersion())
	if err != nil {
		return nil, err
	}
	made.ResultType, made.Result = "task", nil
	if made.Status == taskCompleted || made.Status == taskAsks { // tasks/get has the rest
		made.Status, made.Requests = taskWorking, nil
	}
	*ctx.Value(taskKey{}).(**task) = made
	return &mcp.CallToolResult{}, nil
}

// startTask starts a run that asks its host, if the host can show questions to people. asks receives a value when
// there may be a question for the host.
func (s *Server) startTask(ctx context.Context, c call, req orchestrator.Request) (_ *runs.Run, asks <-chan struct{},
	err error) {
	if !s.hostAsks(c.caller.Kind, c.request) {
		run, err := s.runs.Start(ctx, req)
		return run, nil, err
	}
	parked, err := s.parking.start(ctx, req, answering{answerer(c), opensURLs(c.request)})
	if err != nil {
		return nil, nil, err
	}
	go func() {
		<-parked.Done()
		s.parking.leave(parked)
	}()
	return parked.Run, parked.wake, nil
}

// endsSoon waits until the run is done, asks a person, or has taken taskAfter. It reports whether the run is done. If
// ctx ends, the run is cancelled.
func endsSoon(ctx context.Context, run *runs.Run, asks <-chan struct{}) bool {
	changed, stop := run.Subscribe()
	defer stop()
	limit := time.NewTimer(taskAfter)
	defer limit.Stop()
	for {
		if status := run.Status(); status.State == runs.Done || len(status.Questions) > 0 {
			return status.State == runs.Done
		}
		select {
		case <-changed:
		case <-asks:
			return run.Status().State == runs.Done
		case <-limit.C:
			return false
		case <-ctx.Done():
			run.Cancel()
			<-run.Done()
		}
	}
}
