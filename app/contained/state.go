package contained

import (
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/runner"
)

// maxReached is how many hosts are kept for each server.
const maxReached = 256

// State is what a server has done since Airlock started.
type State struct {
	Sandbox string    `json:"sandbox,omitempty"` // its ID; empty if the server does not run
	Memory  int64     `json:"memory,omitempty"`  // bytes, at most so far; 0 if it is unknown
	Starts  int       `json:"starts"`
	Reached []Reached `json:"reached,omitempty"` // by host
}

// Reached is what a server has exchanged with a host.
type Reached struct {
	Host        string `json:"host"` // NAME:PORT
	Connections int    `json:"connections"`
	Sent        int64  `json:"sent"`             // bytes
	Received    int64  `json:"received"`         // bytes
	Refused     int    `json:"refused"`          // connections that were not made
	Reason      string `json:"reason,omitempty"` // of the last refusal
}

// state is the State of a server. Its methods are safe for concurrent use.
type state struct {
	mu      sync.Mutex
	running *runner.Program // the newest one; nil if none runs
	starts  int
	hosts   map[string]*Reached
}

// state returns the state of a server.
func (s *Servers) state(id string) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[id] == nil {
		s.states[id] = &state{hosts: map[string]*Reached{}}
	}
	return s.states[id]
}

// started notes the start of a server.
func (s *Servers) started(id string, p *runner.Program) *state {
	t := s.state(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.starts = p, t.starts+1
	return t
}

// ended notes the end of a program.
func (t *state) ended(p *runner.Program) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == p {
		t.running = nil
	}
}

// of returns what is known about a host, or nil if there is no space.
func (t *state) ofLocked(host egress.Host) *Reached {
	name := host.String()
	if t.hosts[name] == nil {
		if len(t.hosts) >= maxReached {
			return &Reached{}
		}
		t.hosts[name] = &Reached{Host: name}
	}
	return t.hosts[name]
}

func (t *state) reached(host egress.Host, o egress.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ofLocked(host)
	r.Connections++
	r.Sent += o.Sent
	r.Received += o.Received
}

func (t *state) refused(host egress.Host, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ofLocked(host)
	r.Refused++
	r.Reason = reason
}

// State returns what a server has done. It is the zero value for a server that was not started.
func (s *Servers) State(id string) State {
	t := s.state(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	got := State{Starts: t.starts}
	if t.running != nil {
		got.Sandbox, got.Memory = t.running.ID(), t.running.Usage().PeakMemory
	}
	for _, r := range t.hosts {
		got.Reached = append(got.Reached, *r)
	}
	slices.SortFunc(got.Reached, func(a, b Reached) int { return strings.Compare(a.Host, b.Host) })
	return got
}
