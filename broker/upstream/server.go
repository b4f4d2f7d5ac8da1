package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// maxBackoff is the longest time between two attempts to connect.
const maxBackoff = time.Minute

// server is one configured upstream: its session while there is one, and what
// is known about its tools even while there is none.
type server struct {
	config Config
	opts   Options
	spawn  *spawner

	done    chan struct{}  // closed by close
	running sync.WaitGroup // everything that close waits for

	announced chan struct{} // the server said that its list changed
	changed   chan struct{} // known changed: OnChange is due
	listing   chan struct{} // held while a list is read and stored, so that an old one never follows a newer

	mu       sync.Mutex
	closed   bool
	watched  bool     // the keeper runs: changes are told from now on
	attempt  *attempt // to connect, while one is under way
	session  *session // nil before the first and after a lost one is noticed
	known    catalog.Server
	ttl      time.Duration
	failed   *StartError // why the last attempt failed; nil after a good one
	failures int         // attempts and sessions without a single good call
	retryAt  time.Time   // before that, no new attempt
	protocol string      // the revision to begin with
}

// attempt is one try to connect, shared by all who wait for it.
type attempt struct {
	over chan struct{} // closed when err is set
	err  error
}

func newServer(c Config, o Options, spawn *spawner) *server {
	return &server{
		config: c, opts: o, spawn: spawn,
		done: make(chan struct{}), announced: make(chan struct{}, 1), changed: make(chan struct{}, 1), listing: make(chan struct{}, 1),
		known: catalog.Server{ID: c.ID, Problem: "it was not started yet"}, protocol: newestProtocol,
	}
}

// start makes the first attempt, waits for it, and keeps the list fresh from
// then on.
func (s *server) start(ctx context.Context) {
	if _, err := s.connected(ctx); err != nil {
		s.opts.Logger.WarnContext(ctx, "upstream server is missing",
			slog.String(telemetry.KeyServer, s.config.ID), slog.String(telemetry.KeyError, err.Error()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.watched = true
	s.running.Go(s.keep)
}

// connected returns the live session, and makes one where there is none. The
// attempt goes on when ctx ends: others may wait for it.
func (s *server) connected(ctx context.Context) (*session, error) {
	s.mu.Lock()
	if s.session != nil && s.session.over() {
		s.session = nil
		s.failures++
		s.retryAt = time.Now().Add(backoff(s.failures))
	}
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, ErrClosed
	case s.session != nil:
		defer s.mu.Unlock()
		return s.session, nil
	case s.attempt == nil && time.Now().Before(s.retryAt):
		defer s.mu.Unlock()
		return nil, s.lastFailureLocked()
	case s.attempt == nil:
		s.attempt = &attempt{over: make(chan struct{})}
		background := context.WithoutCancel(ctx)
		s.running.Go(func() { s.try(background) })
	}
	attempt := s.attempt
	s.mu.Unlock()
	select {
	case <-attempt.over:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if attempt.err != nil {
		return nil, attempt.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil, ErrClosed
	}
	return s.session, nil
}

func (s *server) lastFailureLocked() error {
	if s.failed != nil {
		return s.failed
	}
	return &StartError{ServerID: s.config.ID, Reason: ErrExited, Problem: "it ended several times in a row and is left alone for a while"}
}

// backoff is how long to wait after n failures in a row: not at all after the
// first, then 1, 2, 4 seconds and so on.
func backoff(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return min(maxBackoff, time.Second<<min(n-2, 10))
}

// try makes one attempt and tells everybody what came of it.
func (s *server) try(ctx context.Context) {
	ctx, cancel := s.lifetime(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, s.config.StartTimeout)
	defer stop()
	session, list, err := s.establish(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	attempt := s.attempt
	s.attempt = nil
	defer close(attempt.over)
	switch {
	case err != nil:
		attempt.err = s.failLocked(err)
	case s.closed:
		attempt.err = ErrClosed
		s.running.Go(session.close)
	default:
		s.session, s.failed, s.protocol = session, nil, newestProtocol
		if p := session.protocol(); p < modernProtocol {
			s.protocol = p
		}
		s.storeLocked(list)
		s.running.Go(func() { s.mourn(session) })
	}
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
	s.retryAt = time.Now().Add(backoff(s.failures + 1))
	if len(s.known.Tools) == 0 && s.known.Problem != start.Problem {
		s.known = catalog.Server{ID: s.config.ID, Problem: start.Problem}
		s.tellLocked()
	}
	return start
}

// storeLocked keeps a new list and tells if it differs.
func (s *server) storeLocked(list listing) {
	next := catalog.Server{ID: s.config.ID, Tools: list.tools, Warnings: list.warnings}
	same := s.known.Problem == "" && sameTools(s.known.Tools, next.Tools)
	s.known, s.ttl = next, list.ttl
	if !same {
		s.tellLocked()
	}
}

// tellLocked makes OnChange due.
func (s *server) tellLocked() {
	if s.watched {
		signal(s.changed)
	}
}

// signal puts a token into a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sameTools compares two lists without regard to order.
func sameTools(a, b []catalog.Tool) bool {
	if len(a) != len(b) {
		return false
	}
	digests := make(map[string]string, len(a))
	for _, tool := range a {
		digests[tool.Name] = tool.Digest
	}
	for _, tool := range b {
		if digests[tool.Name] != tool.Digest {
			return false
		}
	}
	return true
}

// mourn logs the end of a session that nobody asked to end.
func (s *server) mourn(session *session) {
	<-session.ended
	if !s.closing() {
		s.opts.Logger.WarnContext(context.Background(), "upstream connection ended", slog.String(telemetry.KeyServer, s.config.ID))
	}
}

// lifetime ends a context when the server is closed.
func (s *server) lifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func (s *server) closing() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// succeeded notes that the server answered a call.
func (s *server) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = 0
}

func (s *server) listed() catalog.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *server) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil || len(s.known.Tools) > 0 {
		return nil
	}
	return s.failed
}

// close ends the session and everything that runs for the server.
func (s *server) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	session := s.session
	s.session = nil
	close(s.done)
	s.mu.Unlock()
	if session != nil {
		session.close()
	}
	s.running.Wait()
}

// refresh reads the list again and keeps it.
func (s *server) refresh(ctx context.Context) error {
	ctx, cancel := s.lifetime(ctx)
	defer cancel()
	ctx, stop := context.WithTimeout(ctx, s.config.StartTimeout)
	defer stop()
	session, err := s.connected(ctx)
	if err != nil {
		return fmt.Errorf("refreshing server %q: %w", s.config.ID, err)
	}
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return fmt.Errorf("refreshing server %q: %w", s.config.ID, ctx.Err())
	}
	list, err := session.list(ctx, s.config.ID)
	if err != nil {
		return fmt.Errorf("refreshing server %q: %w", s.config.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeLocked(list)
	return nil
}
