package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

var _ egress.Gate = (*RunCalls)(nil)

// connectTool is the tool name of connections in records and questions. Their server ID is the host, which has a colon
// and so is not the ID of a server.
const connectTool = "connect"

// Connect implements egress.Gate for the code of the run. A connection has the stages of a call: the policies decide,
// a person is asked if they require it, the host counts as read, and an intent is recorded before it is made.
func (s *RunCalls) Connect(ctx context.Context, host egress.Host) (func(egress.Outcome), error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &attempt{run: s, broker: s.broker, id: telemetry.NewID("call"), began: s.broker.opts.Now(),
		call: Call{ServerID: host.String(), Name: connectTool}}
	a.tool = catalog.Tool{ServerID: host.String(), Name: connectTool}
	if !s.enterConnection(a, cancel) {
		cancel()
		return nil, &egress.Refusal{Reason: "the run is over"}
	}
	end := func(fail *failure) {
		defer cancel()
		defer s.leave(a)
		ctx := context.WithoutCancel(ctx)
		a.endGrant(ctx, fail == nil || !fail.refused)
		_ = a.conclude(ctx, fail) // it has logged the error
	}
	if fail := a.connect(ctx, host); fail != nil {
		fail.refused = true
		end(fail)
		return nil, &egress.Refusal{Reason: fail.Message}
	}
	return func(o egress.Outcome) { end(a.connected(o)) }, nil
}

// enterConnection adds a connection to the active calls. It reports false if the run is over.
func (s *RunCalls) enterConnection(a *attempt, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active.closed {
		return false
	}
	s.active.cancels[a.id] = cancel
	return true
}

// connect passes a connection through the stages before it is made.
func (a *attempt) connect(ctx context.Context, host egress.Host) *failure {
	if a.run.opts.Player != nil {
		return failf(errortype.PolicyDenied, "a replay makes no connections")
	}
	a.input = map[string]any{"host": host.Name, "port": json.Number(fmt.Sprint(host.Port))}
	var err error
	if a.arguments, err = json.Marshal(a.input); err != nil {
		return undecided(err)
	}
	a.hash = a.broker.recorder.Hash(a.arguments)
	a.rules = a.broker.admission.Rules()
	a.before = a.run.facts.now(a.broker.opts.Logger, a.rules.Policies)
	decide := func(a *attempt, ctx context.Context) *failure { return a.decideConnection(ctx, host) }
	for _, next := range []stage{decide, (*attempt).approve, (*attempt).markRead,
		(*attempt).inForce, (*attempt).intend} {
		if fail := next(a, ctx); fail != nil {
			return fail
		}
		if ctx.Err() != nil {
			return a.cut(ctx)
		}
	}
	return nil
}

// decideConnection has admission decide about the connection.
func (a *attempt) decideConnection(ctx context.Context, host egress.Host) *failure {
	run := a.run.identity
	r, grant, err := a.broker.admission.Decide(context.WithoutCancel(ctx), admission.Act{
		Kind: admission.Connection, Agent: admission.AgentOf(run.Caller), Rules: a.rules, RunID: run.ID, CallID: a.id,
		Host: &policies.Connection{Principal: run.Caller.Name(), Facts: run.Caller.Facts,
			Server: run.Caller.Kind == caller.Contained,
			Host:   host.Name, Port: host.Port, Session: a.before},
	})
	if err != nil {
		return undecided(err)
	}
	a.ruling, a.grant, a.decided = r.Rules, grant, true
	if r.Error == nil {
		return nil
	}
	f := failf(errortype.PolicyDenied, "policy does not allow a connection to %s: %s", host,
		a.withoutPaths(strings.Join(a.ruling.Reasons, "; ")))
	f.detail = strings.Join(append(a.ruling.Reasons, a.ruling.Errors...), "; ")
	return f
}

// connected returns the failure of a connection that was made, or nil. It sets the detail of the outcome.
func (a *attempt) connected(o egress.Outcome) *failure {
	a.traffic = audit.Traffic{BytesSent: o.Sent, BytesReceived: o.Received}
	if o.Address.IsValid() {
		a.traffic.Address = o.Address.String()
	}
	if o.Err == nil {
		return nil
	}
	f := failf(errortype.Transient, "the connection failed")
	f.detail = o.Err.Error()
	return f
}
