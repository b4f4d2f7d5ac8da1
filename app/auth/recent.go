package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/database"
)

const (
	// freshTime is how long an answer of the database of a cluster counts without another question. A revocation waits
	// as long before it returns, so that no node uses what it read before (Gray and Cheriton, Leases, 1989).
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

// narrow makes a change after which fewer credentials count. In a cluster, it returns when no process uses what it read
// before. If ctx ends first, the change was made, and the other nodes follow within freshTime.
func (t *Tokens) narrow(ctx context.Context, change func(tx database.Tx) error) error {
	if err := t.db.Update(ctx, change); err != nil || !t.db.IsShared() {
		return err
	}
	t.recent.mu.Lock()
	t.recent.known = nil
	t.recent.mu.Unlock()
	select {
	case <-time.After(freshTime):
	case <-ctx.Done():
	}
	return nil
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
