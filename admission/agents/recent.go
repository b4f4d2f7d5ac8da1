package agents

import (
	"context"
	"reflect"
	"sync"

	"github.com/airlock-mcp/airlock/internal/database"
)

// maxRecent is the maximum number of cached agents.
const maxRecent = 4096

// recentAgents caches agents as of their last decision. It saves a transaction per act: work
// prepared with a cached agent is repeated if the transaction that decides finds another state
// (Reload). The zero value is ready to use. It is safe for concurrent use.
type recentAgents struct {
	mu   sync.Mutex
	byID map[string]Agent
}

func (r *recentAgents) get(id string) (Agent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.byID[id]
	return a, ok
}

func (r *recentAgents) put(a Agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil || len(r.byID) >= maxRecent {
		r.byID = map[string]Agent{}
	}
	r.byID[a.ID] = a
}

// memoKey is the key of an agent in the database's memo.
type memoKey string

// Reload reads an agent again in a transaction. changed reports whether its state is another than a.
func (s *Service) Reload(ctx context.Context, tx database.Tx, a Agent) (now Agent, changed bool, err error) {
	memo := database.MemoOf(tx)
	now, known := memo.Get(memoKey(a.ID)).(Agent)
	if known && s.expired(now) { // its status has changed without a write
		known = false
	}
	if !known {
		if now, err = s.find(ctx, tx, a.ID); err != nil {
			return now, false, err
		}
		memo.Put(memoKey(a.ID), now)
	}
	if now.reading == a.reading {
		return now, false, nil
	}
	s.remembered.put(now)
	return now, !now.equals(a), nil
}

// equals reports whether two readings of an agent found the same state.
func (a Agent) equals(b Agent) bool {
	a.reading, b.reading = nil, nil
	return reflect.DeepEqual(a, b)
}

// Recent returns an agent as of its last act. Its state may have changed, so the caller must Reload
// the agent before permitting anything.
func (s *Service) Recent(ctx context.Context, id string) (Agent, error) {
	if a, ok := s.remembered.get(id); ok {
		return a, nil
	}
	a, err := s.Find(ctx, id)
	if err == nil {
		s.remembered.put(a)
	}
	return a, err
}
