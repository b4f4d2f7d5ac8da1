package clusterlimit_test

import (
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/clusterlimit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/database/databasetest"
)

// allowed sends requests of a principal at several nodes at once until each of them is refused twice, and returns how
// many were allowed.
func allowed(t *testing.T, db *database.DB, most, nodes int, principal string) int {
	t.Helper()
	var count atomic.Int64
	var wait sync.WaitGroup
	for range nodes {
		l := requests(t, db, most)
		for range 4 {
			wait.Go(func() {
				for refused := 0; refused < 2; {
					switch err := l.Allow(t.Context(), principal); {
					case err == nil:
						count.Add(1)
					case errors.Is(err, admission.ErrTooOften):
						refused++
					default:
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wait.Wait()
	return int(count.Load())
}

// window is long, because a request that is taken at the end of a slot, and not used before, is lost.
const window = 1000 * time.Hour

// requests returns the limiter of a node that allows a number of requests in the window.
func requests(t *testing.T, db *database.DB, most int) *clusterlimit.Requests {
	r := clusterlimit.NewRequests(db, admission.Rate{Calls: most, Per: window})
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func open(t *testing.T) *database.DB {
	t.Helper()
	db, err := databasetest.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), clusterlimit.Schema,
		clusterlimit.SchemaCalls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// The rate counts for all nodes together (issue 28).
func TestTheRateIsThatOfAllNodes(t *testing.T) {
	db := open(t)
	if got := allowed(t, db, 60, 3, "ann"); got != 60 {
		t.Errorf("%d requests of 60 were allowed", got)
	}
	if got := allowed(t, db, 60, 2, "bob"); got != 60 {
		t.Errorf("%d requests of another principal were allowed", got)
	}
	if got := allowed(t, db, 60, 1, "ann"); got != 0 {
		t.Errorf("%d requests above the limit were allowed at a node that has just started", got)
	}
	// Each request stays in the window for as long as its slot.
	for what, moved := range map[string]time.Duration{
		"have left the window": -window - window/30, "were before the clock was set back": 2 * window} {
		if err := db.Exec(t.Context(), "UPDATE request_rate SET at = at + ?", moved.Milliseconds()); err != nil {
			t.Fatal(err)
		}
		if got := allowed(t, db, 60, 2, "ann"); got != 60 {
			t.Errorf("%d requests were allowed after others that %s", got, what)
		}
	}
}

// Above a thousand requests, nodes take several at once. They never take more than there are, and leave next to none.
func TestSharesAreBounded(t *testing.T) {
	const most = 8000
	if got := allowed(t, open(t), most, 3, "ann"); got > most || got < most*9/10 {
		t.Errorf("%d requests of %d were allowed", got, most)
	}
}

// Requests that cannot be counted are refused.
func TestWithoutTheDatabaseNothingIsAllowed(t *testing.T) {
	db := open(t)
	l := requests(t, db, 10)
	if err := l.Allow(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Allow(t.Context(), "ann"); !errors.Is(err, admission.ErrState) {
		t.Errorf("without the database: %v", err)
	}
}
