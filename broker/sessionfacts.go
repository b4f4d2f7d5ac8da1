package broker

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// maxSessions bounds how many sessions' facts are kept. Rules rest on them, so
// none is forgotten while its session lives: past that, new sessions are refused.
const maxSessions = 10_000

// ErrSessions says that so many sessions are open that no run of a further one
// can begin. It may succeed when another session has ended.
var ErrSessions = errors.New("too many sessions are open")

// sessionFacts are what a session of the host has done so far, over all its runs.
type sessionFacts struct {
	runs  map[*RunCalls]bool // those that are not closed; guarded by Broker.mu
	ended bool               // the facts go with the last run; guarded by Broker.mu

	mu      sync.Mutex // guards all below
	calls   int
	servers map[string]bool // those that something was read from
}

func newSessionFacts() *sessionFacts {
	return &sessionFacts{runs: map[*RunCalls]bool{}, servers: map[string]bool{}}
}

// openFacts returns the facts of the session of a run that begins. Calls without
// a session share nothing with each other.
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

// closeFacts says that a run is over. Calling it twice is fine.
func (b *Broker) closeFacts(run *RunCalls) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(run.facts.runs, run)
	b.forgetLocked(run.identity.Caller.Session)
}

// EndSession forgets what a session of the host has done, as soon as none of its
// runs is open. For a session that is not known it does nothing.
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

// begin counts a call and returns how many came before it, and which servers
// something was read from.
func (f *sessionFacts) begin() (calls int, servers []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls - 1, slices.Sorted(maps.Keys(f.servers))
}

// read notes that data of a server has entered the session.
func (f *sessionFacts) read(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[server] = true
}
