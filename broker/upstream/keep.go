package upstream

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Notifications of new tools arrive in bursts: a server that adds ten tools sends ten of
// them. The list is read settle after the last notification, or maxSettle after the first.
const (
	settle    = 100 * time.Millisecond
	maxSettle = time.Second
)

// A server that goes on announcing is read quickReads times at once, and then so
// often in each readsWithin: its list, the wrappers and the sandboxes kept ready cost
// more than a few seconds' delay.
const (
	quickReads  = 5
	readsWithin = 30 * time.Second
)

// pace contains the times at which lists were read after a notification, oldest first.
type pace struct{ read []time.Time }

// wait is how long the next one is put off.
func (p *pace) wait(now time.Time) time.Duration {
	if len(p.read) < quickReads {
		return 0
	}
	return max(0, readsWithin-now.Sub(p.read[0]))
}

// note remembers one.
func (p *pace) note(now time.Time) {
	p.read = append(p.read, now)
	if len(p.read) > quickReads {
		p.read = p.read[1:]
	}
}

// keep refreshes the list when the server announces a change and when the list
// is old, connects again while the last attempt failed, and calls OnChange, until
// the server is closed.
func (s *server) keep() {
	ctx, cancel := s.within(context.Background())
	defer cancel()
	var announced pace
	var putOff <-chan time.Time // set while an announced change waits
	read := func(since time.Time) {
		announced.note(time.Now())
		s.update(ctx, "announced", since)
	}
	for {
		due, missing := s.nextUpdate()
		timer := time.NewTimer(due)
		select {
		case <-s.done:
			timer.Stop()
			return
		case <-s.changed:
			s.opts.OnChange(s.config.ID)
		case <-s.failing: // nextUpdate has another answer now
		case <-s.announced:
			first := time.Now()
			if putOff != nil {
				break // that one will see this change, too
			}
			if !s.settled(first) {
				return
			}
			if wait := announced.wait(time.Now()); wait > 0 {
				putOff = time.After(wait)
				break
			}
			read(first)
		case <-putOff:
			putOff = nil
			read(time.Now())
		case <-timer.C:
			if missing {
				s.retry(ctx)
			} else {
				s.update(ctx, "due", time.Now())
			}
		}
		timer.Stop()
	}
}

// jitter spreads simultaneous actions of many servers and Airlocks: up to a fifth of the
// wait is added to it.
const jitter = 0.2

// nextUpdate returns the time until the keeper's next action: to reconnect after a failed
// attempt, or to read the list again.
func (s *server) nextUpdate() (due time.Duration, missing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		wait := backoff(s.failures + 1)
		return max(0, time.Until(s.retryAt)) + time.Duration(rand.Float64()*jitter*float64(wait)), true
	}
	return s.refreshAfterLocked(), false
}

// retry connects again to a server that is missing. Connecting lists its tools.
func (s *server) retry(ctx context.Context) {
	if _, err := s.connected(ctx); err != nil {
		if !s.closing() {
			s.opts.Logger.DebugContext(ctx, "upstream server is still missing",
				slog.String(telemetry.KeyServer, s.config.ID), slog.String(telemetry.KeyError, err.Error()))
		}
		return
	}
	s.opts.Logger.InfoContext(ctx, "upstream server is connected", slog.String(telemetry.KeyServer, s.config.ID))
}

// settled waits until a burst of announcements is over; false when the server
// was closed meanwhile.
func (s *server) settled(first time.Time) bool {
	for {
		quiet := time.NewTimer(min(settle, maxSettle-time.Since(first)))
		select {
		case <-s.done:
			quiet.Stop()
			return false
		case <-s.announced:
			quiet.Stop()
		case <-quiet.C:
			return true
		}
	}
}

func (s *server) update(ctx context.Context, why string, since time.Time) {
	if err := s.reread(ctx); err != nil {
		if !s.closing() {
			s.opts.Logger.WarnContext(ctx, "upstream tools could not be refreshed",
				slog.String(telemetry.KeyServer, s.config.ID),
				slog.String("reason", why), slog.String(telemetry.KeyError, err.Error()))
		}
		return
	}
	s.opts.Logger.DebugContext(ctx, "upstream tools refreshed", slog.String(telemetry.KeyServer, s.config.ID),
		slog.String("reason", why), slog.Int64(telemetry.KeyDuration, time.Since(since).Milliseconds()))
}

// refreshAfterLocked is how long the list is good for.
func (s *server) refreshAfterLocked() time.Duration {
	if s.ttl > 0 && s.ttl < s.opts.Refresh {
		return s.ttl
	}
	return s.opts.Refresh
}
