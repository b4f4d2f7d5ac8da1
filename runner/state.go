package runner

import (
	"fmt"
	"slices"
	"sync"
)

// state is the lifecycle state of a sandbox.
type state string

const (
	starting  state = "starting"  // processes exist, the guest is not ready
	ready     state = "ready"     // the guest waits for its start line
	running   state = "running"   // the code may run
	paused    state = "paused"    // the code does not run
	suspended state = "suspended" // its state is saved, and no process is left
	stopped   state = "stopped"   // killed or ended by itself
	closed    state = "closed"    // nothing is left
)

// next lists every allowed change. The only way back is to running, from paused or
// suspended: a sandbox is used once.
var next = map[state][]state{
	starting:  {ready, stopped, closed},
	ready:     {running, stopped, closed},
	running:   {paused, stopped, closed},
	paused:    {running, suspended, stopped, closed},
	suspended: {paused, running, stopped, closed},
	stopped:   {stopped, closed},
	closed:    {},
}

// machine is the one place where states change.
type machine struct {
	id string

	mu  sync.Mutex
	now state
}

// to changes the state, or returns an error that names action and the current state.
func (m *machine) to(target state, action string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(next[m.now], target) {
		return fmt.Errorf("cannot %s sandbox %q in state %s", action, m.id, m.now)
	}
	m.now = target
	return nil
}

// is reports whether the state is one of those given.
func (m *machine) is(states ...state) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(states, m.now)
}
