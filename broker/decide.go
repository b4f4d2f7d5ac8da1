package broker

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/policies"
)

// decide has admission decide about the call.
func (a *attempt) decide(ctx context.Context) *failure {
	run := a.run.identity
	a.usage.Done = ctx.Done()
	// Apart from a wait for a rate, which ends with ctx, the decision is fast. A suspended agent gets the
	// reason, so the decision is not cancelled with ctx.
	r, grant, err := a.broker.admission.Decide(context.WithoutCancel(ctx), admission.Act{
		Kind: admission.Call, Agent: admission.AgentOf(run.Caller), Conversation: run.Caller.Session,
		Context:   run.Context,
		Arguments: a.arguments, Request: a.request(), Rules: a.rules, Usage: a.usage,
		Nested: a.run.opts.Admitted != nil, RunID: run.ID, CallID: a.id,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return a.cut(ctx)
	case err != nil:
		return undecided(err)
	}
	a.ruling, a.grant = r.Rules, grant
	switch a.decided = r.Error == nil || r.Error.Limit == ""; {
	case r.Error == nil:
		return nil
	case !a.decided:
		return exceeded(r.Error.Limit, r.Error.Type(), "%s", r.Error.Message).retryableIf(r.Error.Retryable)
	case len(r.Rules.Reasons) == 0:
		return failureOf(r)
	}
	f := failf(errortype.PolicyDenied, "policy does not allow this call: %s. Do not retry it; ask the user",
		a.withoutPaths(strings.Join(a.ruling.Reasons, "; ")))
	f.detail = strings.Join(append(a.ruling.Reasons, a.ruling.Errors...), "; ")
	return f
}

// request describes the call to the policies.
func (a *attempt) request() *policies.Request {
	return &policies.Request{Principal: a.run.identity.Caller.Name(), Facts: a.run.identity.Caller.Facts,
		Tool: a.tool, Settings: a.settings,
		Input: a.input, Session: a.before}
}

// failureOf returns the failure of an act that an agent may not perform.
func failureOf(r admission.Ruling) *failure {
	f := failf(r.Error.Type(), "%s", r.Refusal())
	f.detail, f.Retryable = f.Message, f.Type == errortype.RateLimit
	return f
}

// undecided returns the failure of an act for which no decision was possible.
func undecided(err error) *failure {
	f := failf(errortype.Sandbox, "it could not be decided whether the agent may do this, so it was not done").because(
		err).retryable()
	f.refused = true
	return f
}

// withoutPaths replaces the paths of rule files by their last element, because code in a sandbox
// does not need to know paths of the host. The record contains the full paths.
func (a *attempt) withoutPaths(text string) string {
	for _, r := range a.ruling.Rules {
		if directory, base := filepath.Split(r.File); directory != "" {
			text = strings.ReplaceAll(text, r.File, base)
		}
	}
	return text
}
