package broker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// maxSessions is the maximum number of sessions whose facts are kept. Rules depend on these facts,
// so they are not evicted while the session exists: beyond the limit, new sessions are refused.
const maxSessions = 10_000

// ErrSessions is returned if the maximum number of sessions is open. Open can be retried when
// another session has ended.
var ErrSessions = errors.New("too many sessions are open")

// Taint keeps the servers that conversations have read. *taint.Store implements it and documents
// the contract.
type Taint interface {
	Servers(ctx context.Context, who caller.Caller) ([]string, error)
	Add(ctx context.Context, who caller.Caller, server string) error
}

// sessionFacts are the facts about a session of the host, over all its runs.
type sessionFacts struct {
	caller caller.Caller
	taint  Taint              // nil if the facts end with the session
	runs   map[*RunCalls]bool // the open runs; guarded by Broker.mu
	ended  bool               // the facts are removed with the last run; guarded by Broker.mu

	mu      sync.Mutex // guards all fields below
	calls   int
	servers map[string]bool // servers from which data was read
	unknown bool            // other servers may have been read before
}

func newSessionFacts() *sessionFacts {
	return &sessionFacts{runs: map[*RunCalls]bool{}, servers: map[string]bool{}}
}

// openFacts returns the facts of the session of a run that starts. A run without a session gets
// separate facts.
func (b *Broker) openFacts(run *RunCalls) (*sessionFacts, error) {
	if run.identity.Caller.Session == "" {
		return newSessionFacts(), nil
	}
	return b.factsOf(run)
}

func (b *Broker) factsOf(run *RunCalls) (*sessionFacts, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	session := run.identity.Caller.Session
	f, ok := b.sessions[session]
	if !ok {
		if len(b.sessions) >= maxSessions {
			return nil, ErrSessions
		}
		f = newSessionFacts()
		f.caller = run.identity.Caller
		if f.caller.Lineage != "" {
			f.taint = b.opts.Taint
			f.unknown = f.taint == nil
		}
		b.sessions[session] = f
	}
	f.runs[run] = true
	return f, nil
}

// restore adds the servers that other sessions of the conversation have read. It is called before each call, because
// such a session can read a server while a run goes on, and pass the data on to it through another server. If
// no rule reads the facts, the servers stay unknown.
func (f *sessionFacts) restore(log *slog.Logger, rules *policies.Engine) {
	if f.taint == nil {
		return
	}
	if !rules.ReadsSession() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unknown = true
		return
	}
	ctx := context.Background() // the facts are those of all runs of the session
	servers, err := f.taint.Servers(ctx, f.caller)
	if err != nil {
		log.WarnContext(ctx, "the servers that a conversation has read are unknown, so rules about the session deny",
			slog.String(telemetry.KeySession, f.caller.Session), slog.Any(telemetry.KeyError, err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unknown = err != nil
	for _, server := range servers {
		f.servers[server] = true
	}
}

// closeFacts is called when a run has ended. It may be called more than once.
func (b *Broker) closeFacts(run *RunCalls) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(run.facts.runs, run)
	b.forgetLocked(run.identity.Caller.Session)
}

// EndSession removes the facts of a session of the host when none of its runs is open. It does
// nothing for an unknown session.
func (b *Broker) EndSession(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f, ok := b.sessions[session]; ok {
		f.ended = true
		b.forgetLocked(session)
	}
}

// forgetLocked removes the facts of a session that has ended.
func (b *Broker) forgetLocked(session string) {
	if f, ok := b.sessions[session]; ok && f.ended && len(f.runs) == 0 {
		delete(b.sessions, session)
	}
}

// begin counts a call of a run and returns the facts before it.
func (f *sessionFacts) begin(log *slog.Logger, rules *policies.Engine) policies.Session {
	f.restore(log, rules)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return policies.Session{Calls: f.calls - 1, Servers: slices.Sorted(maps.Keys(f.servers)), Unknown: f.unknown}
}

// now returns the facts without counting a call.
func (f *sessionFacts) now(log *slog.Logger, rules *policies.Engine) policies.Session {
	f.restore(log, rules)
	f.mu.Lock()
	defer f.mu.Unlock()
	return policies.Session{Calls: f.calls, Servers: slices.Sorted(maps.Keys(f.servers)), Unknown: f.unknown}
}

// read records that data of a server may enter the session.
func (f *sessionFacts) read(ctx context.Context, server string) error {
	f.mu.Lock()
	known := f.servers[server]
	f.mu.Unlock()
	if known {
		return nil
	}
	if f.taint != nil && f.caller.Lineage != caller.UnknownLineage {
		if err := f.taint.Add(ctx, f.caller, server); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[server] = true
	return nil
}

// markRead records the server as read before the intent. A call that fails counts as well, because
// the server may have reached the program or a person.
func (a *attempt) markRead(ctx context.Context) *failure {
	err := a.run.facts.read(ctx, a.tool.ServerID)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return a.cut(ctx)
	}
	f := failf(errortype.Sandbox,
		"the call was not made, because the read could not be recorded").because(err).retryable()
	f.refused = true
	return f
}
