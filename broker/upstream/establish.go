package upstream

import (
	"context"
	"errors"
	"time"
)

// establish connects, shakes hands and lists. A *StartError says what failed;
// any other error means that Airlock is closing.
//
// The newest revision begins with server/discover. A server that exits or says
// nothing at all upon it is tried once more in the older way: some stop at any
// first message but initialize.
func (s *server) establish(ctx context.Context) (*session, listing, error) {
	s.mu.Lock()
	protocol := s.protocol
	s.mu.Unlock()
	session, err := s.dial(ctx, protocol)
	if protocol == newestProtocol && isSilent(err) && ctx.Err() == nil {
		session, err = s.dial(ctx, legacyProtocol)
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

// errSilent ends an attempt at which the server has said nothing.
var errSilent = errors.New("the server has said nothing so far")

// silentError marks a *StartError of a server that never said a word of JSON-RPC.
type silentError struct{ *StartError }

// Unwrap returns the failure itself.
func (e silentError) Unwrap() error { return e.StartError }

func isSilent(err error) bool {
	var silent silentError
	return errors.As(err, &silent)
}

// dial opens one connection. A first try, in the newest revision, is given up
// after half of the time if the server has said nothing by then.
func (s *server) dial(ctx context.Context, protocol string) (*session, error) {
	tap := newTap()
	link, err := s.open(tap)
	if err != nil {
		return nil, err
	}
	dialing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if protocol == newestProtocol {
		probe := time.AfterFunc(s.config.StartTimeout/2, func() {
			if !tap.wasHeard() {
				cancel(errSilent)
			}
		})
		defer probe.Stop()
	}
	session, err := dial(dialing, link, tap, s.opts.Version, protocol, func() { signal(s.announced) })
	if err == nil {
		return session, nil
	}
	failure := link.explain(s.config, err, dialing.Err() != nil)
	link.stop()
	if errors.Is(context.Cause(dialing), errSilent) || !tap.wasHeard() && errors.Is(failure, ErrExited) {
		return nil, silentError{failure}
	}
	return nil, failure
}

func (s *server) open(tap *tap) (link, error) {
	if s.config.URL != "" {
		return newHTTPLink(s.config, tap, s.opts.Logger), nil
	}
	process, err := startProcess(s.config, s.spawn, s.opts.Logger)
	if err != nil {
		return nil, err
	}
	return newStdio(process, tap, s.opts.Logger), nil
}

// listFailure says why a server that shook hands has no list.
func (s *server) listFailure(ctx context.Context, session *session, err error) error {
	if errors.Is(err, errBadList) {
		return &StartError{ServerID: s.config.ID, Reason: ErrNotMCP, Problem: err.Error(), cause: err}
	}
	return session.link.explain(s.config, err, ctx.Err() != nil)
}
