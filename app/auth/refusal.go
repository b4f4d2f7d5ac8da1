package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// ScopeError says that a caller is known and lacks a scope (RFC 6750, section 3.1,
// insufficient_scope).
type ScopeError struct {
	Scope  string
	Caller caller.Caller // as its credential says; the zero value: what it has is not told
}

// Error names the scope.
func (e *ScopeError) Error() string { return "this needs a token with the scope " + e.Scope }

// Refusal is the answer to a request that its caller may not make.
type Refusal struct {
	Status        int
	Code, Message string
	// Challenge is that of WWW-Authenticate (RFC 6750, section 3; RFC 9728, section 5.1);
	// empty: the request may be sent again in a second as it is.
	Challenge string
}

// Write sends the answer.
func (r Refusal) Write(w http.ResponseWriter) {
	if r.Challenge != "" {
		w.Header().Set("WWW-Authenticate", r.Challenge)
	} else {
		w.Header().Set("Retry-After", "1")
	}
	problem.Write(w, r.Status, r.Code, r.Message)
}

// Refuse returns the answer to a request of a path for an error of Identify, a
// *ScopeError, or either within another; false for all other errors. It says how to
// get a token that will do: with which scopes, and where what is known of the path
// as a protected resource is.
func (a *Authenticator) Refuse(ctx context.Context, err error, path string) (Refusal, bool) {
	var lacks *ScopeError
	switch {
	case errors.As(err, &lacks):
		a.tell(ctx, err)
		return Refusal{http.StatusForbidden, "insufficient_scope", lacks.Error(), a.challenge(path, "insufficient_scope", a.stepUp(lacks))}, true
	case errors.Is(err, ErrProfiles):
		return Refusal{http.StatusForbidden, "insufficient_scope", ErrProfiles.Error(), a.challenge(path, "insufficient_scope", nil)}, true
	case errors.Is(err, ErrShare):
		return Refusal{http.StatusTooManyRequests, "rate_limited", ErrShare.Error(), ""}, true
	case errors.Is(err, ErrNone):
		return Refusal{http.StatusUnauthorized, "unauthorized", "the request has no token: send it as Authorization: Bearer", a.challenge(path, "", a.first())}, true
	case errors.Is(err, ErrInvalid):
		return Refusal{http.StatusUnauthorized, "unauthorized", "the token is not valid", a.challenge(path, "invalid_token", nil)}, true
	}
	return Refusal{}, false
}

// challenge is a value of WWW-Authenticate.
func (a *Authenticator) challenge(path, failed string, scopes []string) string {
	var parts []string
	if failed != "" {
		parts = append(parts, `error="`+failed+`"`)
	}
	if len(scopes) > 0 {
		parts = append(parts, `scope="`+strings.Join(scopes, " ")+`"`)
	}
	if a.Issuer != nil {
		parts = append(parts, `resource_metadata="`+a.Issuer.MetadataURL(path)+`"`)
	}
	return strings.TrimSpace("Bearer " + strings.Join(parts, ", "))
}

// first is what a client asks for that has no token yet: what a host needs.
func (a *Authenticator) first() []string {
	if a.Issuer == nil {
		return nil
	}
	return a.Issuer.scopesFor([]string{ScopeRun}, "")
}

// stepUp is what a client asks for that has a token and needs more: what it lacks
// beside what it has, since the new token takes the place of the old one. It is empty
// where no scope gives what it lacks.
func (a *Authenticator) stepUp(lacks *ScopeError) []string {
	who := lacks.Caller
	if a.Issuer == nil || who.Known() && who.Issuer == "" { // a token of Airlock's own
		return []string{lacks.Scope}
	}
	if len(a.Issuer.scopesFor([]string{lacks.Scope}, "")) == 0 {
		return nil
	}
	profile := who.Profile
	if profile == a.Profile && !a.Issuer.names(profile) {
		profile = "" // no scope has given it
	}
	return a.Issuer.scopesFor(append([]string{lacks.Scope}, who.Scopes...), profile)
}
