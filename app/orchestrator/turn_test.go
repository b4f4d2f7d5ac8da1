package orchestrator

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/redact"
)

// Twelve runs of one account have much to redact (issue 23: they delayed the run of another one to
// 60 s). Little is redacted without a slot, and the next free slot is that of the other account, however
// many of the first are waiting.
func TestRedactionTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := quota.For(quota.Redactions)
		limit.Total = 2
		parts := &Parts{cleaning: quota.New(limit)}
		var mu sync.Mutex // guards order
		var order []string
		free := make(chan struct{})
		redactFor := func(principal string, size int) {
			r := &run{parts: parts}
			r.identity.Caller = caller.Caller{Principal: principal, Kind: caller.User}
			r.inTurn(t.Context(), size, func() {
				mu.Lock()
				order = append(order, principal)
				mu.Unlock()
				if size > muchToRedact {
					<-free
				}
			})
		}
		var running sync.WaitGroup
		for range 12 {
			running.Go(func() { redactFor("mallory", 1<<20) })
		}
		synctest.Wait()
		running.Go(func() { redactFor("ann", muchToRedact+1) })
		synctest.Wait()
		running.Go(func() { redactFor("bob", muchToRedact) })
		synctest.Wait()
		if want := []string{"mallory", "mallory", "bob"}; !slices.Equal(order, want) {
			t.Fatalf("got %v in the slots, want %v", order, want)
		}
		free <- struct{}{} // one of the two ends
		synctest.Wait()
		if len(order) != 4 || order[3] != "ann" {
			t.Errorf("got the order %v, want ann after the first that ended", order)
		}
		close(free)
		running.Wait()
	})
}

// A run with much to redact keeps no sandbox while it waits for its turn: others can use the slot.
func TestWhoWaitsToRedactHoldsNoSandbox(t *testing.T) {
	l := newLab(t, nil, admission.Limits{}, Options{}, func(_ context.Context, c *conn) error {
		return c.ask(methodFinish, `{"ok":true,"has_result":true,"data":"`+strings.Repeat("password=",
			muchToRedact)+`"}`,
			&struct{}{})
	})
	limit := quota.For(quota.Redactions)
	limit.Total = 1
	l.parts.cleaning = quota.New(limit)
	busy, err := l.parts.cleaning.Wait(t.Context(), "another account")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan *Outcome)
	go func() { ended <- l.run(t, ofSession("ses_1")) }()
	for closed := false; !closed; {
		select {
		case <-ended:
			t.Fatal("the run ended while it had its sandbox")
		default:
			now, most := l.fake.Alive()
			closed = now == 0 && most == 1
			runtime.Gosched()
		}
	}
	busy.Release()
	if outcome := <-ended; !outcome.Envelope.Result.OK {
		t.Errorf("got %+v, want a result", outcome.Envelope.Result.Error)
	}
}

// The processor time of redaction is added to that of the run which caused it, and to no other.
func TestRedactionIsCharged(t *testing.T) {
	parts := &Parts{cleaning: quota.New(quota.For(quota.Redactions))}
	hostile, trivial := &run{parts: parts}, &run{parts: parts}
	text := make([]byte, 0, 1<<20)
	for len(text) < 1<<20 {
		text = append(text, "password="...)
	}
	hostile.inTurn(t.Context(), len(text), func() { redact.New().Bytes(text) })
	trivial.inTurn(t.Context(), 0, func() {})
	charged, other := time.Duration(hostile.cleaned.Load()), time.Duration(trivial.cleaned.Load())
	if charged == 0 || charged <= other {
		t.Errorf("got %v charged to the run with 1 MiB, %v to the other, want the first to pay", charged, other)
	}
}
