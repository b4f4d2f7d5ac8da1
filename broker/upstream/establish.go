package upstream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// establish connects, performs the handshake and lists the tools. It returns a *StartError if
// that fails; any other error means that Airlock is closing.
func (s *server) establish(ctx context.Context) (*session, listing, error) {
	s.mu.Lock()
	protocol := s.protocol
	s.mu.Unlock()
	if s.config.SSE && protocol == newestProtocol {
		protocol = legacyProtocol // the newest one has no such transport
	}
	session, err := s.dial(ctx, protocol)
	if again, ok := errors.AsType[*tryAgain](err); ok && ctx.Err() == nil {
		session, err = s.dial(ctx, again.protocol)
	}
	if err != nil {
		return nil, listing{}, err
	}
	list, err := session.list(ctx, s.config.ID)
	if err != nil {
		failure := s.listFailure(ctx, session, err)
		session.close()
		return nil, listing{}, failure
	}
	return session, list, nil
}

// tryAgain is a failure of the handshake after which another revision may work.
type tryAgain struct {
	*StartError
	protocol string
}

// Unwrap returns the failure itself.
func (e *tryAgain) Unwrap() error { return e.StartError }

// errSilent ends an attempt in which the server has sent nothing.
var errSilent = errors.New("the server has said nothing so far")

// dial opens one connection.
//
// The newest revision begins with server/discover, and not every older server
// answers that: some stay silent, some exit. A server that is silent for half
// of the time gets initialize, too: it may as well be slow to start, so it is
// not ended. Where that turns out to be wrong, or a server has exited, there is
// one more attempt.
func (s *server) dial(ctx context.Context, protocol string) (*session, error) {
	tap := newTap()
	link, err := s.open(ctx, tap)
	if err != nil {
		return nil, err
	}
	dialing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var gaveUp atomic.Bool
	if protocol == newestProtocol {
		probe := time.AfterFunc(s.config.StartTimeout/2, func() {
			if !tap.wasHeard() {
				gaveUp.Store(true)
				if !link.skipDiscovery() {
					cancel(errSilent)
				}
			}
		})
		defer probe.Stop()
	}
	session, err := s.shakeHands(dialing, link, tap, protocol)
	if err == nil {
		return session, nil
	}
	failure := link.explain(s.config, err, dialing.Err() != nil)
	link.stop()
	switch {
	case errors.Is(context.Cause(dialing), errSilent), errors.Is(failure, ErrExited) && !tap.wasHeard():
		return nil, &tryAgain{failure, legacyProtocol}
	case gaveUp.Load() && errors.Is(failure, ErrNotMCP):
		return nil, &tryAgain{failure, newestProtocol}
	}
	return nil, failure
}

func (s *server) open(ctx context.Context, tap *tap) (link, error) {
	switch {
	case s.config.SSE:
		return newSSELink(s.config, tap, s.opts.Logger), nil
	case s.config.URL != "":
		return newHTTPLink(s.config, tap, s.opts.Logger), nil
	}
	process, err := startProcess(ctx, s.config, s.spawn, s.opts.Logger)
	if err != nil {
		return nil, err
	}
	s.process.Store(process)
	return newStdio(process, tap, s.opts.Logger), nil
}

// listFailure returns why a server that completed the handshake has no list.
func (s *server) listFailure(ctx context.Context, session *session, err error) error {
	if errors.Is(err, errBadList) {
		return &StartError{ServerID: s.config.ID, Reason: ErrNotMCP, Problem: err.Error(), cause: err}
	}
	return session.link.explain(s.config, err, ctx.Err() != nil)
}
