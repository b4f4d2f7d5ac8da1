package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// interruptAfter is how long after the guest has asked for it the host interrupts
// the guest. Programs that print ten thousand lines and end are over by then.
const interruptAfter = 25 * time.Millisecond

// handleInterrupt lets the guest be interrupted soon, so that it writes the output that
// it holds, whatever the code does then. Only Node's guest waits for the signal.
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

// interrupt interrupts the guest as often as it asks for it, at most once in
// interruptAfter, until ctx ends.
func (r *run) interrupt(ctx context.Context) {
	for {
		select {
		case <-r.guest.interrupts:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(interruptAfter):
		case <-ctx.Done():
			return
		}
		err := r.sandbox.Interrupt(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		// It may have just ended. If not, it waits for the signal: try again.
		r.parts.Logger.DebugContext(ctx, "a guest could not be interrupted",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		select {
		case r.guest.interrupts <- struct{}{}:
		default: // it has asked again
		}
	}
}
