package auth

import (
	"errors"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

const (
	// freshTime is how long an answer of the database of a cluster counts without another question. What another node
	// has revoked counts within a second everywhere: a watched act is checked each watchInterval.
	freshTime = 250 * time.Millisecond
	// graceTime is how long what was last known of a token counts while the database of a cluster does not answer.
	graceTime = time.Minute
	// maxRecent is the number of remembered answers above which old ones are removed.
	maxRecent = 10_000
)

// recent has what the database last said of tokens. The zero value is ready to use.
type recent struct {
	mu    sync.Mutex // guards known
	known map[string]recentAnswer
}

type recentAnswer struct {
	value any
	at    time.Time
}

// forget has the next questions answered by the database. It is called after a change by this process.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
}

// lastKnown returns the answer of ask. In a cluster, it returns the last answer to the same question instead if that is
// not older than freshTime, or not older than graceTime and the database does not answer. Refusals are not remembered.
func lastKnown[T any](t *Tokens, key string, ask func() (T, error)) (T, error) {
	if !t.db.IsShared() {
		return ask()
	}
	begun := t.now()
	t.recent.mu.Lock()
	last, known := t.recent.known[key]
	t.recent.mu.Unlock()
	if age := begun.Sub(last.at); known && age >= 0 && age < freshTime {
		return last.value.(T), nil
	}
	answer, err := ask()
	t.recent.mu.Lock()
	defer t.recent.mu.Unlock()
	switch {
	case err == nil:
		if t.recent.known == nil || len(t.recent.known) >= maxRecent {
			t.recent.known = map[string]recentAnswer{}
		}
		t.recent.known[key] = recentAnswer{answer, begun}
	case !errors.Is(err, database.ErrUnavailable):
		delete(t.recent.known, key)
	case known && t.now().Sub(last.at) < graceTime:
		return last.value.(T), nil
	}
	return answer, err
}
