package broker

import (
	"maps"
	"slices"
	"sync"
)

// maxSessions bounds how many sessions' facts are kept. Past that the facts of
// all are forgotten together, which can only make a limit start anew.
const maxSessions = 10_000

// facts are what a session of the host has done so far, over all its runs.
type facts struct {
	mu      sync.Mutex // guards all below
	calls   int
	servers map[string]bool // those that have answered
}

// factsOf returns the facts of a session. Calls without a session, such as
// those of `airlock run`, share nothing with each other.
func (b *Broker) factsOf(session string) *facts {
	if session == "" {
		return &facts{servers: map[string]bool{}}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if f, ok := b.sessions[session]; ok {
		return f
	}
	if len(b.sessions) >= maxSessions {
		clear(b.sessions)
	}
	f := &facts{servers: map[string]bool{}}
	b.sessions[session] = f
	return f
}

// EndSession forgets what a session of the host has done.
func (b *Broker) EndSession(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, session)
}

// begin counts a call and returns how many came before it, and which servers
// have answered.
func (f *facts) begin() (calls int, servers []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls - 1, slices.Sorted(maps.Keys(f.servers))
}

// answered notes that data of a server has entered the session.
func (f *facts) answered(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[server] = true
}
