package server

import (
	"sync"

	"github.com/airlock-mcp/airlock/app/orchestrator"
)

// How much the recent outcomes of all sessions may keep.
const (
	maxRecent      = 64
	maxRecentBytes = 16 << 20 // of logs and results
)

// recent keeps the newest outcomes of runs that somebody waited for, so that
// get_run can show what they printed. The zero value is ready.
type recent struct {
	mu    sync.Mutex
	kept  []keptRun // oldest first
	bytes int
}

type keptRun struct {
	session string
	outcome *orchestrator.Outcome
}

// size is about how many bytes the outcome holds.
func (k keptRun) size() int {
	return len(k.outcome.Stdout) + len(k.outcome.Stderr) + len(k.outcome.Envelope.Result.Data)
}

func (r *recent) add(session string, outcome *orchestrator.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := keptRun{session, outcome}
	r.kept = append(r.kept, added)
	r.bytes += added.size()
	for len(r.kept) > maxRecent || (r.bytes > maxRecentBytes && len(r.kept) > 1) {
		r.bytes -= r.kept[0].size()
		r.kept = append([]keptRun(nil), r.kept[1:]...) // a fresh array, so that the oldest is freed
	}
}

// get returns the outcome of a run of the given session, or nil.
func (r *recent) get(session, runID string) *orchestrator.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		if k.session == session && k.outcome.Envelope.RunID == runID {
			return k.outcome
		}
	}
	return nil
}
