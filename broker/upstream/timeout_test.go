package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The limit of a call is about the server, not about the person whom it asks.
func TestTimeStandsStillWhileAPersonIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, p, stop := WithPausableTimeout(t.Context(), time.Minute)
		defer stop()
		time.Sleep(50 * time.Second)
		p.Pause()
		p.Pause() // two concurrent questions
		time.Sleep(time.Hour)
		p.Resume()
		time.Sleep(time.Hour)
		p.Resume()
		time.Sleep(50 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("got %v, want the whole limit again after the last answer", context.Cause(ctx))
		}
		time.Sleep(11 * time.Second)
		if !TimedOut(ctx) || cancelled(ctx) {
			t.Errorf("got %v, want the time to be over", context.Cause(ctx))
		}
	})
}

func TestWhyARequestEnded(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	ctx, _, stop := WithPausableTimeout(parent, time.Minute)
	defer stop()
	if TimedOut(ctx) || cancelled(ctx) {
		t.Error("ended at once")
	}
	cancel()
	if TimedOut(ctx) || !cancelled(ctx) {
		t.Errorf("got %v, want a cancellation", context.Cause(ctx))
	}
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelLate()
	ctx, _, stopLate := WithPausableTimeout(late, time.Minute)
	defer stopLate()
	if !TimedOut(ctx) {
		t.Errorf("got %v, want the time to be over", context.Cause(ctx))
	}
}
