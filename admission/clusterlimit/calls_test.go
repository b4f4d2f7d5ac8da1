package clusterlimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/clusterlimit"
	"github.com/airlock-mcp/airlock/internal/database"
)

// calls returns the rates of a node.
func calls(t *testing.T, db *database.DB) *clusterlimit.Calls {
	c := clusterlimit.NewCalls(db, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// made makes up to most calls of a key, each of which may wait, until one is refused. It returns how many were made and
// when the refused one can be made.
func made(t *testing.T, c *clusterlimit.Calls, key string, of admission.Rate, most int) (n int, wait time.Duration) {
	for ; n < most; n++ {
		var ok bool
		if wait, ok = c.Take(t.Context(), key, of, time.Now()); !ok {
			break
		}
	}
	return n, wait
}

// pass has the buckets refilled as if time had passed.
func pass(t *testing.T, db *database.DB, by time.Duration) {
	t.Helper()
	if err := db.Exec(t.Context(), "UPDATE call_rate SET refilled = refilled - ?", by.Nanoseconds()); err != nil {
		t.Fatal(err)
	}
}

// The rate of a server counts for all nodes together, and is refilled as in memory.
func TestTheRateOfCallsIsThatOfAllNodes(t *testing.T) {
	db, rate := open(t), admission.Rate{Calls: 20, Per: time.Hour}
	all := func(key string, rate admission.Rate) int {
		var count atomic.Int64
		var wait sync.WaitGroup
		for range 3 {
			c := calls(t, db)
			for range 4 {
				wait.Go(func() {
					n, left := made(t, c, key, rate, 100)
					count.Add(int64(n))
					if most := rate.Per / time.Duration(rate.Calls); left <= most/2 || left > most {
						t.Errorf("a call of %q is refused for %v", key, left)
					}
				})
			}
		}
		wait.Wait()
		return int(count.Load())
	}
	if got := all("a", rate); got != 20 {
		t.Errorf("%d calls of 20 were made", got)
	}
	if got := all("b", rate); got != 20 {
		t.Errorf("%d calls of another key were made", got)
	}
	if got := all("a", admission.Rate{Calls: 2, Per: time.Hour}); got != 2 {
		t.Errorf("%d calls of another rate of 2 were made", got)
	}
	for name, c := range map[string]struct {
		passed time.Duration
		want   int
	}{
		"three minutes": {3 * time.Minute, 1}, "two hours": {2 * time.Hour, 20},
		"a clock set back": {-2 * time.Hour, 20},
	} {
		pass(t, db, c.passed)
		if got := all("b", rate); got != c.want {
			t.Errorf("after %s: %d calls, want %d", name, got, c.want)
		}
	}
	pass(t, db, 2*time.Hour)
	var rows int
	made(t, calls(t, db), "c", rate, 1) // a node that has just started removes full buckets
	if err := db.QueryRow(t.Context(), "SELECT count(*) FROM call_rate", nil, &rows); err != nil || rows != 1 {
		t.Errorf("%d rows are left (%v), want that of one key", rows, err)
	}
}

// Calls wait in turn, up to a second, as in memory.
func TestCallsOfAllNodesWaitInTurn(t *testing.T) {
	db, rate := open(t), admission.Rate{Calls: 2, Per: time.Minute}
	take := func(c *clusterlimit.Calls, want bool, most time.Duration) {
		t.Helper()
		wait, ok := c.Take(t.Context(), "a", rate, time.Now())
		if ok != want || wait > most || !ok && wait <= time.Second {
			t.Errorf("a call waits %v (%t), want at most %v (%t)", wait, ok, most, want)
		}
	}
	a, b := calls(t, db), calls(t, db)
	take(a, true, 0)
	take(b, true, 0)
	take(b, false, 30*time.Second)
	pass(t, db, 29500*time.Millisecond)
	c := calls(t, db)
	take(c, true, 500*time.Millisecond)
	take(c, false, 30500*time.Millisecond)
}

// Fast rates cost few transactions, and those of few calls are exact.
func TestTransactionsOfCalls(t *testing.T) {
	for _, c := range []struct {
		rate                admission.Rate
		calls, transactions int // the first transaction removes rows
	}{
		{admission.Rate{Calls: 1000, Per: 5 * time.Second}, 1000, 1 + 20},
		{admission.Rate{Calls: 10_000, Per: time.Minute}, 1000, 1 + 7},
		{admission.Rate{Calls: 1000, Per: time.Minute}, 1000, 1 + 30},
		{admission.Rate{Calls: 1000, Per: time.Hour}, 1000, 1 + 57},
		{admission.Rate{Calls: 39, Per: time.Hour}, 39, 1 + 39},
	} {
		var checks atomic.Int64
		db := open(t).Fenced(func(context.Context, database.Tx) error { checks.Add(1); return nil })
		if n, _ := made(t, calls(t, db), "a", c.rate, c.calls); n != c.calls {
			t.Errorf("%v: %d calls of %d were made", c.rate, n, c.calls)
		}
		// The database of tests repeats each transaction.
		if got := int(checks.Load() / 2); got > c.transactions {
			t.Errorf("%v: %d calls took %d transactions, want at most %d", c.rate, c.calls, got, c.transactions)
		}
	}
}

// Nodes that stop have taken little that they have not used.
func TestLittleIsLeftUnused(t *testing.T) {
	db, rate, sum := open(t), admission.Rate{Calls: 1000, Per: time.Hour}, 0
	for _, most := range []int{300, 300, 1, 1000} {
		n, _ := made(t, calls(t, db), "a", rate, most)
		sum += n
	}
	if sum < 900 || sum > 1000 {
		t.Errorf("%d calls of 1000 were made", sum)
	}
}

// Without the database a node has the rate for itself. Its earlier calls count.
func TestCallsWithoutTheDatabase(t *testing.T) {
	db, rate := open(t), admission.Rate{Calls: 20, Per: time.Hour}
	c := calls(t, db)
	made(t, calls(t, db), "a", rate, 12)
	made(t, c, "a", rate, 5)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if n, wait := made(t, c, "a", rate, 100); n != 15 || wait <= time.Second {
		t.Errorf("%d calls were made without the database, and one is refused for %v", n, wait)
	}
}

// A database that gives no answer does not stop calls.
func TestADatabaseThatGivesNoAnswer(t *testing.T) {
	db, rate := open(t), admission.Rate{Calls: 20, Per: time.Hour}
	var log bytes.Buffer
	c := clusterlimit.NewCalls(db, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { _ = c.Close() })
	made(t, c, "a", rate, 1)
	begun, held := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		begin := sync.OnceFunc(func() { close(begun) })
		if err := db.Update(context.Background(), func(tx database.Tx) error {
			_, err := tx.ExecContext(context.Background(), "UPDATE call_rate SET refilled = refilled")
			begin()
			<-held
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	for n := range 3 {
		if _, ok := c.Take(t.Context(), "a", rate, time.Now()); !ok {
			t.Errorf("call %d was refused", n)
		}
	}
	close(held)
	wait.Wait()
	if err := c.Close(); err != nil { // it waits for the transaction
		t.Error(err)
	}
	if got := strings.Count(log.String(), "does not answer"); got != 1 {
		t.Errorf("%d warnings\n%s", got, log.String())
	}
}
