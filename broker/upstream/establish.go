package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
)

// establish connects, shakes hands and lists. A *StartError says what failed;
// any other error means that Airlock is closing.
//
// The newest revision begins with server/discover. A server that exits or says
// nothing at all upon it is tried once more in the older way: some stop at any
// first message but initialize.
func (s *server) establish(ctx context.Context) (*session, listing, error) {
	start := time.Now()
	s.mu.Lock()
	protocol := s.protocol
	s.mu.Unlock()
	session, err := s.dial(ctx, protocol, start)
	if protocol == newestProtocol && isSilent(err) && ctx.Err() == nil {
		session, err = s.dial(ctx, legacyProtocol, start)
	}
	if err != nil {
		return nil, listing{}, err
	}
	list, err := session.list(ctx, s.config.ID)
	if err != nil {
		failure := s.listFailure(ctx, session, err, time.Since(start))
		session.close()
		return nil, listing{}, failure
	}
	return session, list, nil
}

// silentError marks a *StartError of a server that never said a word of JSON-RPC.
type silentError struct{ *StartError }

// Unwrap returns the failure itself.
func (e silentError) Unwrap() error { return e.StartError }

func isSilent(err error) bool {
	var silent silentError
	return errors.As(err, &silent)
}

// dial opens one connection. The first try, in the newest revision, gets half
// of the time.
func (s *server) dial(ctx context.Context, protocol string, start time.Time) (*session, error) {
	if protocol == newestProtocol {
		half, cancel := context.WithTimeout(ctx, s.config.StartTimeout/2)
		defer cancel()
		ctx = half
	}
	tap := newTap()
	link, err := s.open(tap)
	if err != nil {
		return nil, err
	}
	session, err := dial(ctx, link, tap, s.opts.Version, protocol, func() { signal(s.announced) })
	if err == nil {
		return session, nil
	}
	var waited time.Duration
	if ctx.Err() != nil {
		waited = time.Since(start)
	}
	failure := link.explain(s.config, err, waited)
	link.stop()
	if !tap.wasHeard() && s.config.URL == "" {
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
func (s *server) listFailure(ctx context.Context, session *session, err error, waited time.Duration) error {
	switch {
	case errors.Is(err, errBadList):
		return &StartError{ServerID: s.config.ID, Reason: ErrNotMCP, Problem: err.Error(), cause: err}
	case ctx.Err() != nil:
		return session.link.explain(s.config, err, waited)
	}
	return session.link.explain(s.config, err, 0)
}

// conceal makes a server's text fit for a problem: quoted, short, and without
// the credentials that the server was given.
func (c Config) conceal(text string) string {
	if c.URL != "" {
		text = strings.ReplaceAll(text, c.URL, plainURL(c.URL))
	}
	for _, secrets := range []map[string]string{c.Env, c.Headers} {
		for _, value := range secrets {
			text = replaceSecret(text, value)
		}
	}
	return catalog.Quote(text)
}

// explain implements link.
func (c *stdio) explain(config Config, err error, waited time.Duration) *StartError {
	failure := &StartError{ServerID: config.ID, cause: err}
	if waited > 0 {
		failure.Reason = ErrNoAnswer
		failure.Problem = fmt.Sprintf("it did not answer within %s", rounded(waited)) + c.evidence(config)
		if c.firstRubbish() != "" {
			failure.Reason = ErrNotMCP
		}
		return failure
	}
	patience := time.NewTimer(exitPatience) // its stdout ends a moment before the process does
	defer patience.Stop()
	select {
	case <-c.process.finished:
		failure.Reason = ErrExited
		failure.Problem = "it " + c.process.how() + " before it was ready" + c.evidence(config)
	case <-patience.C:
		failure.Reason = ErrNotMCP
		failure.Problem = "it refused the handshake: " + config.conceal(err.Error()) + c.evidence(config)
	}
	return failure
}

// evidence is what the server printed: a line on stdout that is no MCP, and its
// last words on stderr.
func (c *stdio) evidence(config Config) string {
	text := ""
	if rubbish := c.firstRubbish(); rubbish != "" {
		text += "; it printed " + config.conceal(rubbish) + " on stdout, which is not MCP"
	}
	if words := c.process.lastWords(); words != "" {
		text += "; its last words were " + config.conceal(words)
	}
	return text
}

// gone implements link.
func (c *stdio) gone() bool {
	select {
	case <-c.process.exited:
		return true
	case <-c.closed:
		return true
	default:
		return false
	}
}

// stop implements link.
func (c *stdio) stop() {
	c.Close()
	c.process.stop()
	c.running.Wait()
}
