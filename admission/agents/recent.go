package agents

import (
	"context"
	"sync"
)

// maxRecent is how many agents are remembered.
const maxRecent = 4096

// recentAgents remembers agents as they were when an act of theirs was decided last. It saves a transaction for each
// act: what is prepared for a remembered agent is prepared again if the transaction that decides finds another state
// (attempt.reload). The zero value is ready to use. It is safe for concurrent use.
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

// recent returns an agent as it was at its last act. Its state may have changed, so nothing must be permitted before
// the agent is read again.
func (s *Service) recent(ctx context.Context, id string) (Agent, error) {
	if a, ok := s.remembered.get(id); ok {
		return a, nil
	}
	a, err := s.Find(ctx, id)
	if err == nil {
		s.remembered.put(a)
	}
	return a, err
}
