package upstream

import (
	"context"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Announcements of new tools come in bursts: a server that adds ten tools says
// so ten times. The list is read when it was quiet for settle, or when the
// first announcement is maxSettle old.
const (
	settle    = 100 * time.Millisecond
	maxSettle = time.Second
)

// keep refreshes the list when the server announces a change and when the list
// is old, and calls OnChange, until the server is closed.
func (s *server) keep() {
	ctx, cancel := s.lifetime(context.Background())
	defer cancel()
	for {
		due := time.NewTimer(s.refreshAfter())
		select {
		case <-s.done:
			due.Stop()
			return
		case <-s.changed:
			s.opts.OnChange(s.config.ID)
		case <-s.announced:
			first := time.Now()
			if !s.settled(first) {
				return
			}
			s.update(ctx, "announced", first)
		case <-due.C:
			s.update(ctx, "due", time.Now())
		}
		due.Stop()
	}
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
	if err := s.refresh(ctx); err != nil {
		if !s.closing() {
			s.opts.Logger.WarnContext(ctx, "upstream tools could not be refreshed", slog.String(telemetry.KeyServer, s.config.ID),
				slog.String("reason", why), slog.String(telemetry.KeyError, err.Error()))
		}
		return
	}
	s.opts.Logger.DebugContext(ctx, "upstream tools refreshed", slog.String(telemetry.KeyServer, s.config.ID),
		slog.String("reason", why), slog.Int64(telemetry.KeyDuration, time.Since(since).Milliseconds()))
}

// refreshAfter is how long the list is good for.
func (s *server) refreshAfter() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ttl > 0 && s.ttl < s.opts.Refresh {
		return s.ttl
	}
	return s.opts.Refresh
}
