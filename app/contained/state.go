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
	Files   []Touched `json:"files,omitempty"`   // of a trial, by path
}

// Reached is what a server has exchanged with a host.
type Reached struct {
	Host        string `json:"host"`             // NAME:PORT
	Connections int    `json:"connections"`      // permitted ones, with those that are open
	Sent        int64  `json:"sent"`             // bytes, of ended connections
	Received    int64  `json:"received"`         // bytes, of ended connections
	Refused     int    `json:"refused"`          // connections that were not made
	Reason      string `json:"reason,omitempty"` // of the last refusal
}

// state is the State of a server. Its methods are safe for concurrent use.
type state struct {
	mu      sync.Mutex
	running *runner.Program // the newest one; nil if none runs
	starts  int
	hosts   map[string]*Reached
	files   map[string]bool // of a trial: whether the server wrote the file, by path
}

// state returns the state of a server.
func (s *Servers) state(id string) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[id] == nil {
		s.states[id] = &state{hosts: map[string]*Reached{}, files: map[string]bool{}}
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

// ofLocked returns what is known about a host, or nil if too many hosts are known.
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

// permitted notes a permitted connection before it is made.
func (t *state) permitted(host egress.Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ofLocked(host).Connections++
}

// reached notes the end of a permitted connection.
func (t *state) reached(host egress.Host, o egress.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ofLocked(host)
	if !o.Address.IsValid() {
		r.Connections--
		r.Refused++
		r.Reason = "it was permitted, and could not be connected to"
		return
	}
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
	for path, write := range t.files {
		got.Files = append(got.Files, Touched{path, write})
	}
	slices.SortFunc(got.Files, func(a, b Touched) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(got.Reached, func(a, b Reached) int { return strings.Compare(a.Host, b.Host) })
	return got
}
