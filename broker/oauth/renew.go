package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// seen is the state of the stored sign-in that a source has read last.
type seen struct {
	revision string
	at       time.Time // when it was read; zero: it is read again
	tried    time.Time // when it was read or the database did not answer
	changes  int64     // of this process by then
}

// grace is how long a sign-in is used while the database of a cluster does not answer.
const grace = time.Minute

// failedRead is the last read that has failed.
type failedRead struct {
	begun time.Time
	err   error
}

// reload returns the stored sign-in, including changes by other processes. The result is nil
// if there is no sign-in. The caller must not change it. Calls that wait for the database share one read.
func (s *Source) reload() (*record, error) {
	asked := time.Now()
	if r, isNew := s.known(asked); isNew {
		return r, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if r, isNew := s.known(asked); isNew {
		return r, nil
	}
	var r *record
	err := s.failed.err
	if !s.failed.begun.After(asked) {
		r, err = s.readLocked()
	}
	if !isAway(err) {
		return r, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isKnownLocked() && time.Since(s.seen.at) < grace {
		s.seen.tried = time.Now()
		return s.kept, nil
	}
	return nil, err
}

// known returns the sign-in as it is known, and whether that is new enough for a call that began at a time.
func (s *Source) known(asked time.Time) (r *record, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept, s.opts.Store == nil || s.isKnownLocked() &&
		(time.Since(s.seen.tried) < s.opts.Store.opts.Fresh || s.seen.at.After(asked))
}

// isKnownLocked reports whether the sign-in was read, and not changed by this process since.
func (s *Source) isKnownLocked() bool {
	return !s.seen.at.IsZero() && s.seen.changes == s.opts.Store.changes.Load()
}

// reread is reload that asks the database in any case.
func (s *Source) reread() (*record, error) {
	if s.opts.Store == nil {
		r, _ := s.known(time.Now())
		return r, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.readLocked()
}

// readLocked reads the stored sign-in. It must be called with s.reading held.
func (s *Source) readLocked() (*record, error) {
	now, changes := time.Now(), s.opts.Store.changes.Load()
	r, revision, err := s.opts.Store.load(context.Background(), s.id, s.seen.revision)
	if err == nil && r != nil && (r.Principal != s.opts.Principal || r.ServerID != s.config.ServerID ||
		r.URL != s.config.URL) {
		err = &unreadableError{errors.New("a stored sign-in belongs to another principal or server")}
	}
	if err != nil {
		s.failed = failedRead{now, err}
		return nil, err
	}
	if r != nil {
		for _, credential := range r.secrets() {
			s.hold(credential)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision != s.seen.revision {
		s.kept = r
	}
	s.seen = seen{revision, now, now, changes}
	return s.kept, nil
}

// unreadableError is returned if the stored sign-in is damaged or belongs to another Airlock.
// The next sign-in replaces it.
type unreadableError struct{ cause error }

// Error returns the cause.
func (e *unreadableError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *unreadableError) Unwrap() error { return e.cause }

func isUnreadable(err error) bool {
	var unreadable *unreadableError
	return errors.As(err, &unreadable)
}

// replaceLocked stores r durably before it is used. It must be called by the function of exclusively.
func (s *Source) replaceLocked(r *record) error {
	for _, credential := range r.secrets() {
		s.hold(credential)
	}
	r.Changed = s.opts.Now()
	if s.opts.Store == nil {
		s.keep(r, seen{})
		return nil
	}
	revision, err := s.held.save(r)
	if err == nil {
		now := time.Now()
		s.keep(r, seen{revision, now, now, s.opts.Store.changes.Load()})
	}
	return err
}

// removeLocked removes the stored sign-in, like replaceLocked.
func (s *Source) removeLocked() error {
	if s.opts.Store != nil {
		if err := s.held.remove(); err != nil {
			return err
		}
	}
	s.keep(nil, seen{})
	return nil
}

func (s *Source) keep(r *record, as seen) {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept, s.seen = r, as
}

// exclusively runs do with exclusive access to the sign-in, in this process and across processes. If
// replaces is set, an unreadable sign-in is treated as missing.
func (s *Source) exclusively(ctx context.Context, replaces bool, do func(kept *record) error) (err error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for a token of %q: %w", s.config.ServerID, ctx.Err())
	}
	if s.opts.Store != nil {
		if s.held, err = s.opts.Store.turn(ctx, s.id); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.held.release()) }()
	}
	kept, err := s.reread()
	if err != nil && !(replaces && isUnreadable(err)) {
		return err
	}
	return do(kept)
}

// replace stores a new sign-in.
func (s *Source) replace(ctx context.Context, r *record) error {
	return s.exclusively(ctx, true, func(*record) error {
		s.mu.Lock()
		s.refused = refused{}
		s.mu.Unlock()
		return s.replaceLocked(r)
	})
}

// current returns a sign-in whose token can be sent, or nil if the user has never signed in. A
// token that expires soon is refreshed first by one request, while the others wait for it.
func (s *Source) current(ctx context.Context) (*record, error) {
	r, err := s.reload()
	switch now := s.opts.Now(); {
	case err != nil:
		return nil, s.failure(err)
	case r == nil:
		return nil, nil
	case r.Over != "":
		return nil, s.problem(r.Over, nil)
	case !r.Tokens.isDue(now):
		return r, nil
	case r.Tokens.isUsable(now) && s.config.isInteractive() && r.Tokens.Refresh == "":
		return r, nil
	}
	return s.refresh(ctx, func(r *record) bool { return r.Tokens.isDue(s.opts.Now()) })
}

// refresh gets another token, if due is still true after waiting for exclusive access.
func (s *Source) refresh(ctx context.Context, due func(*record) bool) (*record, error) {
	var r *record
	err := s.exclusively(ctx, false, func(kept *record) error {
		if r = kept; kept == nil || kept.Over != "" || !due(kept) {
			return nil
		}
		next := *kept
		err := s.refreshLocked(ctx, &next)
		if err == nil {
			r = &next
			return nil
		}
		if now := s.opts.Now(); kept.Tokens.isUsable(now) && kept.Tokens.isDue(now) && mayPass(err) {
			return nil // the refresh was early: the old token is still valid
		}
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case isAway(err):
		if kept, _ := s.reload(); kept != nil && kept.Tokens.isUsable(s.opts.Now()) {
			return kept, nil // until it expires; it cannot be renewed now
		}
		return nil, s.failure(err)
	case err != nil:
		return nil, s.failure(err)
	case r == nil:
		return nil, s.problem(whyNever, nil)
	case r.Over != "":
		return nil, s.problem(r.Over, nil)
	}
	return r, nil
}

// mayPass reports whether a failure is a temporary failure of the authorization server.
func mayPass(err error) bool {
	var away *unreachableError
	var refusal *refusal
	return errors.As(err, &away) || errors.As(err, &refusal) && refusal.isTemporary()
}

// refreshLocked gets another token for next and stores it. If the refresh token is refused,
// the sign-in ends, and this is stored too. The request continues after ctx is done, because a
// used refresh token may be invalid and its successor must not be lost.
func (s *Source) refreshLocked(ctx context.Context, next *record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*httpTimeout)
	defer cancel()
	var dpop *signer
	if len(next.Key) > 0 {
		key, err := signerOf(next.Key)
		if err != nil {
			return err
		}
		dpop = &key
	}
	w := newWire(s.newDialer(next.distance()))
	defer w.close()
	if !s.config.isInteractive() {
		if err := s.tolerated(ctx, "",
			func() error { return s.obtain(ctx, w, next, dpop, union(next.Tokens.Scopes, next.Wanted)) }); err != nil {
			return err
		}
		return s.replaceLocked(next)
	}
	if next.Tokens.Refresh == "" {
		return s.endLocked(next, whyOver)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {next.Tokens.Refresh}}
	setResource(form, next)
	got, err := s.requester(w, next, dpop).ask(ctx, form)
	var refusal *refusal
	switch {
	case errors.As(err, &refusal) && refusal.isFinal():
		return s.endLocked(next, whyRevoked)
	case err != nil:
		return err
	}
	next.Tokens = got.tokens(s.opts.Now(), next.Tokens.Scopes, next.Tokens.Refresh)
	if s.config.Exchanges() {
		if err := s.identify(next, got, ""); err != nil {
			return s.endLocked(next, "its sign-in has ended: "+err.Error())
		}
	}
	return s.replaceLocked(next)
}

// endLocked stores that the sign-in has ended.
func (s *Source) endLocked(next *record, why string) error {
	next.Over, next.Tokens.Access, next.Tokens.Refresh, next.Tokens.ID = why, "", "", ""
	return s.replaceLocked(next)
}

// tolerated runs do, unless the authorization server has recently refused Airlock for this sign-in. Then it
// returns the earlier error, so that not every call repeats the request. An error after ctx has ended is none of the
// server's.
func (s *Source) tolerated(ctx context.Context, login string, do func() error) error {
	s.mu.Lock()
	before := s.refused
	s.mu.Unlock()
	if before.err != nil && before.login == login && s.opts.Now().Before(before.until) {
		return before.err
	}
	err := do()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.refused = refused{}
	case ctx.Err() == nil:
		s.refused = refused{err, s.opts.Now().Add(retryAfter), login}
	}
	return err
}

// renew gets another token after the server has refused the token sent (HTTP 401), which is
// empty if none was sent. It reports whether to repeat the request.
func (s *Source) renew(ctx context.Context, sent string) (again bool, err error) {
	kept, err := s.reload()
	switch {
	case err != nil:
		return false, s.failure(err)
	case kept == nil && s.config.isInteractive():
		return false, s.problem(whyNever, nil)
	case kept == nil || kept.Tokens.Access == "" && !s.config.isInteractive():
		return s.first(ctx)
	case kept.Over == "" && kept.Tokens.Access != sent:
		return true, nil // another request has got a new one meanwhile
	}
	if kept.Over == "" && s.opts.Now().Sub(kept.Tokens.Issued) < justIssued && !s.config.isInteractive() {
		return false, s.failure(errors.New("the server does not accept the token that it issues"))
	}
	_, err = s.refresh(ctx, func(r *record) bool { return r.Tokens.Access == sent })
	return err == nil, err
}

// justIssued is how long a token is considered new. A server that refuses a new token would
// refuse the next one too.
const justIssued = 2 * time.Second

// first gets the first token of a grant without a person.
func (s *Source) first(ctx context.Context) (bool, error) {
	err := s.exclusively(ctx, false, func(kept *record) error {
		if kept != nil && kept.Tokens.isUsable(s.opts.Now()) {
			return nil
		}
		return s.tolerated(ctx, "", func() error {
			w := newWire(s.newDialer(s.distance(kept)))
			defer w.close()
			challenge := s.lastChallenge()
			found, err := s.discover(ctx, w, challenge, kept)
			if err != nil {
				return err
			}
			r, err := s.machine(ctx, w, found, s.scopes(found, challenge, nil, nil))
			if err != nil {
				return err
			}
			r.Distance = new(w.dialer.Limit())
			return s.replaceLocked(r)
		})
	})
	if err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, s.failure(err)
	}
	return true, nil
}

// stepUp handles a request that needs more scopes than the token has (RFC 6750, section 3.1).
// The user decides about them; for a grant without a person, they are requested once.
func (s *Source) stepUp(ctx context.Context, sent string, scopes []string) (again bool, err error) {
	lacks := func(r *record) bool {
		return slices.ContainsFunc(scopes, func(scope string) bool { return !slices.Contains(r.Tokens.Scopes, scope) })
	}
	mayAskAgain := false
	err = s.exclusively(ctx, false, func(kept *record) error {
		if kept == nil || kept.Tokens.Access != sent || !lacks(kept) {
			again = kept != nil && kept.Tokens.Access != sent && kept.Over == ""
			return nil
		}
		next := *kept
		next.Wanted = union(scopes, kept.Wanted) // the newest first
		next.Wanted = next.Wanted[:min(len(next.Wanted), maxScopes)]
		mayAskAgain = !s.config.isInteractive()
		return s.replaceLocked(&next)
	})
	switch {
	case err != nil:
		return false, s.failure(err)
	case again:
		return true, nil
	case mayAskAgain:
		r, err := s.refresh(ctx, func(r *record) bool { return r.Tokens.Access == sent })
		return err == nil && !lacks(r), err
	}
	return false, s.problem(whyScopes(scopes), scopes)
}
