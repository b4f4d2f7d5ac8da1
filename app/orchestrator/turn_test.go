package orchestrator

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/redact"
)

// Twelve runs of one account have much to redact (issue 23: they delayed the run of another one to
// 60 s). The next free slot is that of the other account, however many of the first are waiting.
func TestRedactionTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := quota.For(quota.Redactions)
		limit.Total = 2
		parts := &Parts{cleaning: quota.New(limit)}
		var mu sync.Mutex // guards order
		var order []string
		free := make(chan struct{})
		redactFor := func(principal string) {
			r := &run{parts: parts}
			r.identity.Caller = caller.Caller{Principal: principal, Kind: caller.User}
			r.inTurn(t.Context(), func() {
				mu.Lock()
				order = append(order, principal)
				mu.Unlock()
				<-free
			})
		}
		var running sync.WaitGroup
		for range 12 {
			running.Go(func() { redactFor("mallory") })
		}
		synctest.Wait()
		running.Go(func() { redactFor("ann") })
		synctest.Wait()
		if want := []string{"mallory", "mallory"}; !slices.Equal(order, want) {
			t.Fatalf("got %v in the slots, want %v", order, want)
		}
		free <- struct{}{} // one of the two ends
		synctest.Wait()
		if len(order) != 3 || order[2] != "ann" {
			t.Errorf("got the order %v, want ann after the first that ended", order)
		}
		close(free)
		running.Wait()
	})
}

// The processor time of redaction is added to that of the run which caused it, and to no other.
func TestRedactionIsCharged(t *testing.T) {
	parts := &Parts{cleaning: quota.New(quota.For(quota.Redactions))}
	hostile, trivial := &run{parts: parts}, &run{parts: parts}
	text := make([]byte, 0, 1<<20)
	for len(text) < 1<<20 {
		text = append(text, "password="...)
	}
	hostile.inTurn(t.Context(), func() { redact.New().Bytes(text) })
	trivial.inTurn(t.Context(), func() {})
	charged, other := time.Duration(hostile.cleaned.Load()), time.Duration(trivial.cleaned.Load())
	if charged == 0 || charged <= other {
		t.Errorf("got %v charged to the run with 1 MiB, %v to the other, want the first to pay", charged, other)
	}
}
