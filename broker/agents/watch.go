package agents

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

// watchInterval is how often it is looked whether another process has suspended or
// ended an agent whose runs are going on.
const watchInterval = 250 * time.Millisecond

// watches are the agents whose runs are going on. The zero value is ready.
type watches struct {
	running sync.WaitGroup

	mu     sync.Mutex        // guards what follows
	agents map[string]*watch // by ID
	look   chan struct{}     // holds a value when it is to be looked at once; nil while nothing is watched
	closed bool
}

// watch is an agent that is watched.
type watch struct {
	followers int
	inactive  chan struct{} // closed when the agent may not act any more
}

// Watch returns a channel that is closed once the agent is suspended, killed or
// unknown, also by another process, and what ends the watching. Calling stop twice is fine.
func (s *Service) Watch(ctx context.Context, agentID string) (inactive <-chan struct{}, stop func()) {
	w := &s.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.agents[agentID]
	if one == nil {
		one = &watch{inactive: make(chan struct{})}
		if w.agents == nil {
			w.agents = map[string]*watch{}
		}
		w.agents[agentID] = one
	}
	one.followers++
	if w.look == nil && !w.closed {
		w.look = make(chan struct{}, 1)
		look := w.look
		w.running.Go(func() { s.watch(context.WithoutCancel(ctx), look) })
	}
	w.lookLocked()
	return one.inactive, sync.OnceFunc(func() { w.leave(agentID, one) })
}

func (w *watches) leave(agentID string, one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.followers--; one.followers == 0 && w.agents[agentID] == one {
		delete(w.agents, agentID)
	}
	w.lookLocked()
}

// lookLocked has the agents looked at now.
func (w *watches) lookLocked() {
	select {
	case w.look <- struct{}{}:
	default: // nothing is watched, or it is about to be looked at
	}
}

// changed says that an agent of this process's may have been suspended.
func (w *watches) changed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookLocked()
}

func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	w.lookLocked()
	w.mu.Unlock()
	w.running.Wait()
}

// watch looks at the agents until none is watched any more.
func (s *Service) watch(ctx context.Context, look <-chan struct{}) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-look:
		case <-tick.C:
		}
		ids := s.watches.ids()
		if ids == nil {
			return
		}
		active, err := s.active(ctx, ids)
		if err != nil { // what they do is refused meanwhile, since nothing can be decided
			s.opts.Logger.WarnContext(ctx, "looking whether agents are still active", "error", err)
			continue
		}
		s.watches.keep(ids, active)
	}
}

// ids returns who is watched; nil, and nothing looks any more, when it is no agent.
func (w *watches) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.agents) == 0 {
		w.look = nil
		return nil
	}
	ids := make([]string, 0, len(w.agents))
	for id := range w.agents {
		ids = append(ids, id)
	}
	return ids
}

// keep tells those who watch an agent that is not among the active ones.
func (w *watches) keep(asked []string, active map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range asked {
		if one := w.agents[id]; one != nil && !active[id] {
			close(one.inactive)
			delete(w.agents, id)
		}
	}
}

func (s *Service) active(ctx context.Context, ids []string) (map[string]bool, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	active := map[string]bool{}
	err = s.opts.Database.View(ctx, func(tx database.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT id FROM agent WHERE status = 'active' AND id IN (SELECT value FROM json_each(?))`, string(list))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return err
			}
			active[id] = true
		}
		return rows.Err()
	})
	return active, err
}
