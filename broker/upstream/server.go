package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// server is one configured upstream: its session, if connected, and its known tools, even if
// not connected.
type server struct {
	config Config
	opts   Options
	spawn  *spawner
	cache  *listCache

	reread func(context.Context) error // refresh, but for tests
	activity

	lifetime   // it ends with close
	subscribed subscriptions
	signals
	listing chan struct{} // held while a list is read and stored, so that an old one never follows a newer

	mu      sync.Mutex
	closed  bool
	watched bool        // the keeper runs: changes are reported from now on
	attempt *connecting // to connect, while one is under way
	session *session    // nil before the first and after a lost one is noticed
	knowledge
	backoffState
	protocol string // the revision to begin with
}

// activity is the work that is done for a server.
type activity struct {
	running sync.WaitGroup          // everything that close waits for
	calls   sync.WaitGroup          // calls in flight; grows only while the Set has the server
	process atomic.Pointer[process] // the newest one; nil if none was started
}

// signals wake the goroutines that wait for something to happen to a server.
type signals struct {
	announced chan struct{} // the server sent a notification that its list changed
	changed   chan struct{} // known changed: OnChange is due
	failing   chan struct{} // an attempt failed: another one is due
	decided   chan struct{} // closed when the tools are known, or the first attempt to connect is over
	decide    func()        // closes decided; may be called again
}

// knowledge is what is known about a server's tools.
type knowledge struct {
	known  catalog.Server
	ttl    time.Duration // the list's lifetime set by the server, or 0
	listed bool          // known is a list, be it a cached one
	read   time.Time     // when the server was asked for it last
	took   time.Duration // how long its answer took then
	// announcedAt is the time of the first notification of a change since the list was read, or zero.
	announcedAt time.Time
}

// backoffState is the history of attempts to connect.
type backoffState struct {
	failed   *StartError // why the last attempt failed; nil after a good one
	failures int         // attempts and sessions without a single good call
	retryAt  time.Time   // before that, no new attempt
	cuts     int         // connections in a row that soon lost a stream of notifications
}

func newServer(c Config, o Options, spawn *spawner, cache *listCache) *server {
	decided := make(chan struct{})
	s := &server{
		config: c, opts: o, spawn: spawn, cache: cache,
		subscribed: subscriptions{turn: make(chan struct{}, 1)},
		lifetime:   newLifetime(), listing: make(chan struct{}, 1),
		signals: signals{
			announced: make(chan struct{}, 1), changed: make(chan struct{}, 1), failing: make(chan struct{}, 1),
			decided: decided, decide: sync.OnceFunc(func() { close(decided) }),
		},
		knowledge: knowledge{known: catalog.Server{ID: c.ID, Problem: notStarted}}, protocol: newestProtocol,
	}
	s.reread = s.refresh
	return s
}

// notStarted is the problem of a server before Start or Connect.
const notStarted = "it was not started yet"

// restore takes the cached list, if there is one.
func (s *server) restore() {
	list, ok := s.cache.load(s.config)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed || s.closed {
		return
	}
	s.known = catalog.Server{ID: s.config.ID, Tools: list.tools, Features: list.features, Warnings: list.warnings}
	s.ttl, s.listed = list.ttl, true
	s.decide()
}

// startInBackground makes the first attempt and keeps the list fresh, without
// waiting for either.
func (s *server) startInBackground(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.watched {
		return
	}
	if !s.listed {
		s.known.Problem = catalog.StillStarting
	}
	s.watched = true
	background := context.WithoutCancel(ctx)
	s.running.Go(func() {
		s.firstAttempt(background)
		s.keep()
	})
}

// firstAttempt connects, and logs why it cannot.
func (s *server) firstAttempt(ctx context.Context) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	if _, err := s.connected(ctx); err != nil && !s.closing() {
		s.opts.Logger.WarnContext(ctx, "upstream server is missing",
			slog.String(telemetry.KeyServer, s.config.ID), slog.String(telemetry.KeyError, err.Error()))
	}
}

// start makes the first attempt, waits for it, and keeps the list fresh from
// then on.
func (s *server) start(ctx context.Context) {
	s.mu.Lock()
	if !s.listed {
		s.known.Problem = catalog.StillStarting
	}
	s.mu.Unlock()
	s.firstAttempt(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.watched = true
	s.running.Go(s.keep)
}

// storeLocked stores a new list, for which the server was asked at a time, and reports a difference.
func (s *server) storeLocked(list listing, asked time.Time) {
	next := catalog.Server{ID: s.config.ID, Tools: list.tools, Features: list.features, Warnings: list.warnings}
	same := s.listed && s.known.Problem == "" && s.known.Unreachable == "" &&
		sameTools(s.known.Tools, next.Tools) && sameTools(s.known.Features, next.Features)
	next.Noticed = s.known.Noticed
	if !same && s.listed && s.known.Problem == "" {
		next.Noticed = asked
		if !s.announcedAt.IsZero() && s.announcedAt.Before(asked) {
			next.Noticed = s.announcedAt
		}
	}
	s.known, s.ttl, s.listed, s.read, s.announcedAt = next, list.ttl, true, time.Now(), time.Time{}
	s.decide()
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

// announce is called when the server has sent a notification that a list changed.
func (s *server) announce() {
	s.mu.Lock()
	if s.announcedAt.IsZero() {
		s.announcedAt = time.Now()
	}
	s.mu.Unlock()
	signal(s.announced)
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

// describe returns what is known about the server's tools.
func (s *server) describe() catalog.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known
	known.Retrying = s.watched && !s.closed && (known.Problem != "" || known.Unreachable != "")
	return known
}

// isListed reports whether the server's tools are known, be it from the cache.
func (s *server) isListed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

func (s *server) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		return nil // not a *StartError that is nil
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
	s.end()
	s.mu.Unlock()
	if session != nil {
		session.close()
	}
	s.running.Wait()
}

// refresh reads the list again and keeps it.
func (s *server) refresh(ctx context.Context) error {
	ctx, cancel := s.within(ctx)
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
	asked := time.Now()
	list, err := session.list(ctx, s.config.ID)
	if err != nil {
		return fmt.Errorf("refreshing server %q: %w", s.config.ID, err)
	}
	s.mu.Lock()
	s.storeLocked(list, asked)
	s.took = time.Since(asked)
	s.mu.Unlock()
	s.cache.save(s.config, list)
	return nil
}
