package oauth

import (
	"context"
	"errors"
	"net/http"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// binding signs the requests of one connection with one sign-in. A call that was begun with one account, or with none,
// is never sent with another: the account may have been changed by another process while a request was in flight.
type binding struct {
	source *Source
	login  string // see record.login; empty without a sign-in
	failed error  // why the stored sign-in could not be read
}

var (
	_ upstream.Credentials = (*Source)(nil)
	_ upstream.Signer      = (*binding)(nil)
)

// Ready implements upstream.Credentials.
func (s *Source) Ready(ctx context.Context) error {
	_, err := s.current(ctx)
	return err
}

// Bind implements upstream.Credentials.
func (s *Source) Bind() upstream.Signer {
	if s.plain != nil {
		return s.plain.Bind()
	}
	return s.bind()
}

func (s *Source) bind() *binding {
	kept, err := s.reload()
	return &binding{source: s, login: kept.login(), failed: err}
}

// login returns the ID of a sign-in; empty for nil. Sign-ins of older versions have none.
func (r *record) login() string {
	switch {
	case r == nil:
		return ""
	case r.Login == "":
		return "unnamed"
	}
	return r.Login
}

// Changed implements upstream.Signer. A grant without a person has one account for all its tokens, so it never changes.
func (b *binding) Changed() bool {
	if !b.source.config.isInteractive() {
		return false
	}
	kept, err := b.source.reload()
	return (err != nil) != (b.failed != nil) || kept.login() != b.login
}

// check returns an error if the sign-in is no longer the one that the connection was made with.
func (b *binding) check() error {
	switch kept, err := b.source.reload(); {
	case err != nil:
		return b.source.failure(err)
	case !b.source.config.isInteractive(), b.failed == nil && kept.login() == b.login:
		return nil
	case kept == nil && b.login == "":
		return nil // it could not be read then, and there is none
	case kept == nil:
		return b.source.problem(whyNever, nil)
	}
	return b.source.failure(errChanged)
}

// errChanged is returned for a call that was in flight when its user signed in or out.
var errChanged = errors.New(
	"its sign-in was changed while the call was in flight; make the call again to use the new one")

// Sign implements upstream.Signer. It adds nothing if the user has not signed in: not every request needs a sign-in.
func (b *binding) Sign(ctx context.Context, request *http.Request) error {
	r, err := b.current(ctx, request)
	if err != nil || r == nil {
		return err
	}
	return b.source.sign(request, r)
}

// current returns the sign-in for a request, or nil if the request is not to be signed.
func (b *binding) current(ctx context.Context, request *http.Request) (*record, error) {
	s := b.source
	if !s.isServer(request.URL) {
		return nil, nil
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	r, err := s.current(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	if s.config.isInteractive() && r.login() != b.login { // it was replaced while the token was refreshed
		return nil, s.failure(errChanged)
	}
	return r, nil
}

// Refused implements upstream.Signer.
func (b *binding) Refused(ctx context.Context, request *http.Request, response *http.Response) (again bool, err error) {
	s := b.source
	challenge := challengeOf(response.Header)
	sent := tokenOf(request)
	unauthorized := response.StatusCode == http.StatusUnauthorized
	lacksScope := response.StatusCode == http.StatusForbidden && challenge.Error == "insufficient_scope"
	switch {
	case unauthorized && challenge.Error == "use_dpop_nonce" && nonceOf(response.Header) != "":
		return s.takeNonce(nonceOf(response.Header)), nil
	case unauthorized || lacksScope:
		s.remember(challenge)
	default:
		return false, nil
	}
	if err := b.check(); err != nil {
		return false, err
	}
	if lacksScope {
		again, err = s.stepUp(ctx, sent, challenge.Scopes)
	} else {
		again, err = s.renew(ctx, sent)
	}
	if err == nil && again {
		err = b.check()
	}
	return again && err == nil, err
}
