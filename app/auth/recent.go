package auth

import (
	"errors"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

const (
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

// lastKnown returns the answer of ask. If the database of a cluster does not answer, it returns the last answer to the
// same question that is not older than graceTime. Refusals are not remembered.
func lastKnown[T any](t *Tokens, key string, ask func() (T, error)) (T, error) {
	begun := t.now()
	answer, err := ask()
	if !t.db.IsShared() {
		return answer, err
	}
	t.recent.mu.Lock()
	defer t.recent.mu.Unlock()
	last, known := t.recent.known[key]
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
