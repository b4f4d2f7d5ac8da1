package broker

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// maxSessions is the maximum number of sessions whose facts are kept. Rules depend on these facts,
// so they are not evicted while the session exists: beyond the limit, new sessions are refused.
const maxSessions = 10_000

// ErrSessions is returned if the maximum number of sessions is open. Open can be retried when
// another session has ended.
var ErrSessions = errors.New("too many sessions are open")

// sessionFacts are the facts about a session of the host, over all its runs.
type sessionFacts struct {
	runs  map[*RunCalls]bool // the open runs; guarded by Broker.mu
	ended bool               // the facts are removed with the last run; guarded by Broker.mu

	mu      sync.Mutex // guards all fields below
	calls   int
	servers map[string]bool // servers from which data was read
}

func newSessionFacts() *sessionFacts {
	return &sessionFacts{runs: map[*RunCalls]bool{}, servers: map[string]bool{}}
}

// openFacts returns the facts of the session of a run that starts. A run without a session gets
// separate facts.
func (b *Broker) openFacts(run *RunCalls) (*sessionFacts, error) {
	session := run.identity.Caller.Session
	if session == "" {
		return newSessionFacts(), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.sessions[session]
	if !ok {
		if len(b.sessions) >= maxSessions {
			return nil, ErrSessions
		}
		f = newSessionFacts()
		b.sessions[session] = f
	}
	f.runs[run] = true
	return f, nil
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

// begin counts a call and returns the number of earlier calls and the servers from which data was
// read.
func (f *sessionFacts) begin() (calls int, servers []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls - 1, slices.Sorted(maps.Keys(f.servers))
}

// read records that data of a server has entered the session.
func (f *sessionFacts) read(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[server] = true
}
