package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
)

const (
	// interruptAfter is how long after the guest has asked for it the host interrupts
	// the guest. Programs that print ten thousand lines and end are over by then.
	interruptAfter = 25 * time.Millisecond
	// restFactor is how many times as long as an interruption took the host leaves the guest
	// alone behind it. On containerd it starts a program for each, in no control group of the
	// sandbox: without a rest, code could have the host work beyond the limits of its run.
	restFactor = 4
	// maxRest bounds that time, and the one behind interruptions that failed.
	maxRest = time.Second
)

// handleInterrupt schedules an interruption of the guest, so that it writes its buffered
// output even if the code does not return. Only Node's guest uses the signal.
func (r *run) handleInterrupt(req wire.Request) (any, error) {
	if err := decode(req, &struct{}{}); err != nil {
		return nil, err
	}
	if r.request.Language != "node" {
		return nil, wire.Violation("%s is for programs of Node", methodInterrupt)
	}
	select {
	case r.guest.interrupts <- struct{}{}:
	default: // it was asked for already
	}
	return struct{}{}, nil
}

// interrupt interrupts the guest whenever it asks for it, with a rest in between, until ctx
// is done.
func (r *run) interrupt(ctx context.Context) {
	failed := 0
	var rested time.Time // when the host has rested from the last one
	for {
		select {
		case <-r.guest.interrupts:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(max(interruptAfter, time.Until(rested))):
		case <-ctx.Done():
			return
		}
		began := time.Now()
		err := r.sandbox.Interrupt(ctx)
		if err != nil {
			failed++
		} else {
			failed = 0
		}
		rested = time.Now().Add(rest(time.Since(began), failed))
		if err == nil || ctx.Err() != nil {
			continue
		}
		// It may have just ended, or be paused. If not, it waits for the signal: try again.
		r.parts.Logger.DebugContext(ctx, "a guest could not be interrupted",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		select {
		case r.guest.interrupts <- struct{}{}:
		default: // it has asked again
		}
	}
}

// rest is how long the host rests from an interruption that took so long, after so many
// that failed one after the other.
func rest(took time.Duration, failed int) time.Duration {
	long := max(restFactor*took, interruptAfter)
	for range failed {
		if long *= 2; long > maxRest {
			break
		}
	}
	return min(long, maxRest)
}
