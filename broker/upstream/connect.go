package upstream

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// maxBackoff is the longest time between two attempts to connect.
const maxBackoff = time.Minute

// connecting is one attempt to connect, shared by all who wait for it.
type connecting struct {
	over    chan struct{} // closed when the others are set
	session *session
	err     error
}

// connected returns the live session, or opens one. The attempt continues after ctx is done,
// because others may wait for it.
func (s *server) connected(ctx context.Context) (*session, error) {
	s.mu.Lock()
	if s.session != nil && (s.session.over() || s.session.retired.Load()) && !s.closed {
		s.dropLocked()
	}
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, ErrClosed
	case s.session != nil:
		defer s.mu.Unlock()
		return s.session, nil
	case s.attempt == nil && s.config.URL == "" && time.Now().Before(s.retryAt): // starting a process costs something
		defer s.mu.Unlock()
		return nil, s.lastFailureLocked()
	case s.attempt == nil:
		s.attempt = &connecting{over: make(chan struct{})}
		// The context of a host's request has the host's revision, which the client side of the SDK would send in the
		// header of its first request.
		s.running.Go(func() { s.try(context.Background()) })
	}
	attempt := s.attempt
	s.mu.Unlock()
	select {
	case <-attempt.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return attempt.session, attempt.err
}

// dropLocked lets go of a session that is over. Over HTTP a call can find that
// out before the SDK does, so it is closed in any case.
func (s *server) dropLocked() {
	former := s.session
	s.running.Go(func() {
		if former.retired.Load() {
			former.drain(s.done)
		}
		former.close()
	})
	s.session = nil
	if s.config.URL != "" {
		return // the end of a session is not a failure of its server
	}
	s.failures++
	s.retryAt = time.Now().Add(backoff(s.failures))
}

func (s *server) lastFailureLocked() error {
	if s.failed != nil {
		return s.failed
	}
	return &StartError{ServerID: s.config.ID, Reason: ErrExited,
		Problem: "it ended several times in a row and is not restarted for a while"}
}

// backoff is how long to wait after n failures in a row: not at all after the
// first, then 1, 2, 4 seconds and so on.
func backoff(n int) time.Duration { return backoffUpTo(maxBackoff, n) }

func backoffUpTo(most time.Duration, n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return min(most, time.Second<<min(n-2, 20))
}

// try makes one attempt and passes the result to all waiters.
func (s *server) try(ctx context.Context) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	var session *session
	var list listing
	err := s.ready(ctx)
	if err == nil {
		ctx, stop := context.WithTimeout(ctx, s.config.StartTimeout)
		defer stop()
		session, list, err = s.establish(ctx)
	}
	telemetry.CountServerStart(ctx, s.config.ID, err != nil)
	if s.settle(session, list, err) {
		s.cache.save(s.config, list)
	}
}

// ready waits for the sign-in. The time that an authorization server takes is not that of the server.
func (s *server) ready(ctx context.Context) error {
	if s.config.Credentials == nil {
		return nil
	}
	err := s.config.Credentials.Ready(ctx)
	if needed, ok := errors.AsType[*SignInError](err); ok {
		return &StartError{ServerID: s.config.ID, Reason: ErrSignIn, Problem: needed.problem(), cause: needed}
	}
	return err
}

// settle stores the result of an attempt, and reports whether it succeeded.
func (s *server) settle(session *session, list listing, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	attempt := s.attempt
	s.attempt = nil
	defer close(attempt.over)
	defer s.decide()
	switch {
	case err != nil:
		attempt.err = s.failLocked(err)
	case s.closed:
		attempt.err = ErrClosed
		s.running.Go(session.close)
	default:
		attempt.session = session
		s.session, s.failed, s.protocol = session, nil, newestProtocol
		if p := session.protocol(); p < modernProtocol {
			s.protocol = p
		}
		s.storeLocked(list, time.Now())
		s.running.Go(func() { s.logUnexpectedEnd(session) })
		s.running.Go(func() { s.subscribeAgain(session) })
		s.running.Go(func() { s.renew(session) })
		return true
	}
	return false
}

// failLocked keeps the reason. Tools that were known before stay known: a call
// tries again.
func (s *server) failLocked(err error) error {
	var start *StartError
	if s.closed || !errors.As(err, &start) {
		return ErrClosed
	}
	s.failures++
	s.failed = start
	s.protocol = newestProtocol // the server may be another one by then
	s.retryAt = time.Now().Add(backoff(s.failures + 1))
	var needed *SignInError
	next := catalog.Server{ID: s.config.ID, Problem: start.Problem,
		SignIn: errors.As(start, &needed) && needed.Command != ""}
	if s.listed && len(s.known.Tools) > 0 {
		next = s.known
		next.Unreachable = start.Problem
	}
	if next.Problem != s.known.Problem || next.Unreachable != s.known.Unreachable {
		s.tellLocked()
	}
	s.known = next
	signal(s.failing)
	return start
}

// logUnexpectedEnd logs the end of a session that Airlock did not end.
func (s *server) logUnexpectedEnd(session *session) {
	<-session.ended
	if !s.closing() && !session.retired.Load() {
		s.opts.Logger.WarnContext(context.Background(), "upstream connection ended",
			slog.String(telemetry.KeyServer, s.config.ID))
	}
}
