package kernel

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/runner"
)

// dispatcher executes the kernel's actions as runs of the registry, with the policies, approvals,
// limits and records of every run.
type dispatcher struct{ Parts }

var _ kernel.Dispatcher = dispatcher{}

// Call executes one tool call as a run.
func (d dispatcher) Call(ctx context.Context, who caller.Caller, serverID, tool string,
	arguments json.RawMessage) (kernel.Output, error) {
	if _, err := d.Servers.Snapshot(who).Lookup(serverID, tool); err != nil { // it may still be starting
		if err := d.Servers.Await(ctx, serverID); err != nil {
			return kernel.Output{}, err
		}
	}
	req, err := orchestrator.CallRequest(orchestrator.ToolCall{ServerID: serverID, Name: tool, Arguments: arguments})
	if err != nil {
		return refusedRun(err)
	}
	return d.run(ctx, who, req)
}

// Run executes a program as a run.
func (d dispatcher) Run(ctx context.Context, who caller.Caller, language, code string) (kernel.Output, error) {
	if language == "javascript" {
		language = "node"
	}
	return d.run(ctx, who, orchestrator.Request{Language: language, Code: []byte(code)})
}

func (d dispatcher) run(ctx context.Context, who caller.Caller, req orchestrator.Request) (kernel.Output, error) {
	req.Caller, req.PreviewLarge = who, true
	run, err := d.Runs.Start(ctx, req)
	if err != nil {
		return refusedRun(err)
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		return refusedRun(err)
	}
	out := kernel.Output{RunID: run.ID()}
	if failed := outcome.Envelope.Result.Error; failed != nil {
		out.Failure = &kernel.Failure{Type: failed.Type, Message: failed.Message, Retryable: failed.Retryable}
		return out, nil
	}
	out.Data = outcome.Envelope.Result.Data
	return out, nil
}

// refusedRun returns the failure of a request that did not become a run if the caller can correct
// or repeat it. Otherwise it returns err.
func refusedRun(err error) (kernel.Output, error) {
	var advised interface{ Hint() string }
	switch {
	case errors.Is(err, runner.ErrBusy), errors.Is(err, broker.ErrSessions):
		return kernel.Output{Failure: &kernel.Failure{Type: "RateLimit",
			Message: "all sandboxes are in use: try it again later", Retryable: true}}, nil
	case errors.As(err, &advised):
		return kernel.Output{Failure: &kernel.Failure{Type: "ValidationError",
			Message: err.Error() + ": " + advised.Hint()}}, nil
	}
	return kernel.Output{}, err
}

// Risk returns the risk of a tool from the operator's settings and the tool's definition.
func (d dispatcher) Risk(who caller.Caller, serverID, tool string) (policies.Risk, bool) {
	defined, ok := d.Servers.Snapshot(who).Tool(serverID, tool)
	if !ok {
		return policies.RiskUnknown, false
	}
	return d.Parts.Rules.RiskOf(defined), true
}
