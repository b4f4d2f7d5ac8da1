package system

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
)

// acting authorizes the runs and calls of agents. It denies everything until the agent service
// is open. It implements broker.Agents.
type acting struct {
	known atomic.Pointer[agents.Service]
}

var _ broker.Agents = (*acting)(nil)

var errAgentsClosed = errors.New("what is known of agents is not open")

// Decide decides about one run or call of an agent.
func (a *acting) Decide(ctx context.Context, act broker.AgentAct) (broker.AgentRuling, error) {
	known := a.known.Load()
	if known == nil {
		return broker.AgentRuling{}, errAgentsClosed
	}
	asked, err := actOf(act)
	if err != nil {
		return broker.AgentRuling{}, err
	}
	r, err := known.Decide(ctx, asked)
	if err != nil {
		return broker.AgentRuling{}, err
	}
	ruling := broker.AgentRuling{Rules: r.Rules.Rules, Approve: r.Rules.Approve, Risk: r.Risk, Refused: refusalOf(r.Decision)}
	if r.Grant != nil {
		ruling.Grant = grant{r.Grant}
	}
	return ruling, nil
}

// debitVerification authorizes a verification and, if the caller is an agent, debits it. If
// refused is not nil, the verification is not permitted. Otherwise the caller must call end and
// pass whether an engine was asked.
func (a *acting) debitVerification(ctx context.Context, who caller.Caller, v agents.Verification) (end func(asked bool) error, refused *broker.Error, err error) {
	if who.Kind != caller.Agent {
		return func(bool) error { return nil }, nil, nil
	}
	known := a.known.Load()
	if known == nil {
		return nil, nil, errAgentsClosed
	}
	r, err := known.DecideVerification(ctx, who.Principal, v)
	if err != nil || r.Error != nil {
		return nil, refusalOf(r.Decision), err
	}
	return func(asked bool) error { return r.Grant.End(context.WithoutCancel(ctx), asked, 0) }, nil, nil
}

// actOf converts a run or a call for the agent service.
func actOf(act broker.AgentAct) (asked agents.Act, err error) {
	asked = agents.Act{
		AgentID: act.Run.Caller.Principal, Conversation: act.Run.Caller.Session, Context: act.Run.Context,
		Longest: act.Longest, RunID: act.Run.ID,
	}
	if c := act.Call; c != nil {
		asked.ServerID, asked.Tool, asked.Arguments, asked.CallID = c.ServerID, c.Name, c.Arguments, c.ID
		asked.Risk, asked.Schema, asked.Nested, asked.Asks, asked.Refused = c.Risk, c.Schema, c.Nested, c.Asks, c.Refused
		return asked, nil
	}
	asked.Arguments, err = broker.RunArguments(act.Run)
	return asked, err
}

// grant is the permission for one act.
type grant struct{ of *agents.Grant }

// Approve decides again after a person has approved the act.
func (g grant) Approve(ctx context.Context, by string) (*broker.Error, error) {
	d, err := g.of.Approve(ctx, by)
	if err != nil {
		return nil, err
	}
	return refusalOf(d), nil
}

// End records whether the act was done and settles the grant.
func (g grant) End(ctx context.Context, done bool, kept time.Duration) error {
	return g.of.End(ctx, done, kept)
}

// refusalOf returns the error for the code of an agent, or nil if the act is permitted.
func refusalOf(d agents.Decision) *broker.Error {
	if d.Error == nil {
		return nil
	}
	e := &broker.Error{Type: d.Error.Kind, Message: d.Error.Error(), Source: errortype.SourceBroker, Retryable: d.Error.Kind == errortype.RateLimit}
	if d.RetryAt != nil {
		e.Message += "; it begins anew at " + d.RetryAt.UTC().Format(time.RFC3339)
	}
	return e
}
