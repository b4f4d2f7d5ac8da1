package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// ScopeError is returned if an authenticated caller lacks a scope (RFC 6750, section 3.1,
// insufficient_scope).
type ScopeError struct {
	Scope  string
	Caller caller.Caller // with the scopes of its credential; zero if unknown
}

// Error names the scope.
func (e *ScopeError) Error() string { return "this needs a token with the scope " + e.Scope }

// Refusal is the HTTP response to a request that its caller may not make.
type Refusal struct {
	Status        int
	Code, Message string
	// Challenge is the value of WWW-Authenticate (RFC 6750, section 3; RFC 9728, section 5.1).
	// If it is empty, the same request may be sent again after a second.
	Challenge string
}

// Write sends the response.
func (r Refusal) Write(w http.ResponseWriter) {
	if r.Challenge != "" {
		w.Header().Set("WWW-Authenticate", r.Challenge)
	} else {
		w.Header().Set("Retry-After", "1")
	}
	problem.Write(w, r.Status, r.Code, r.Message)
}

// Refuse returns the response to a request for path if err is or wraps an error of Identify, a *ScopeError, or an error
// of the database of a cluster. For other errors it returns false. The response has the scopes that a sufficient token
// needs and the URL of the metadata of the path.
func (a *Authenticator) Refuse(ctx context.Context, err error, path string) (Refusal, bool) {
	var lacks *ScopeError
	var limited *quota.Refusal
	switch {
	case errors.As(err, &lacks):
		a.report(ctx, err)
		return Refusal{http.StatusForbidden, "insufficient_scope", lacks.Error(),
			a.challenge(path, "insufficient_scope", a.stepUp(lacks))}, true
	case errors.Is(err, ErrProfiles):
		return Refusal{http.StatusForbidden, "insufficient_scope", ErrProfiles.Error(),
			a.challenge(path, "insufficient_scope", nil)}, true
	case errors.As(err, &limited):
		limited.Count(ctx)
		status, code := problem.Refused(limited)
		return Refusal{status, code, limited.Error(), ""}, true
	case errors.Is(err, ErrNone):
		return Refusal{http.StatusUnauthorized, "unauthorized",
			"the request has no token: send it as Authorization: Bearer", a.challenge(path, "", a.first())}, true
	case errors.Is(err, ErrInvalid):
		return Refusal{http.StatusUnauthorized, "unauthorized", "the token is not valid",
			a.challenge(path, "invalid_token", nil)}, true
	case errors.Is(err, database.ErrUnavailable), errors.Is(err, cluster.ErrLapsed),
		errors.Is(err, cluster.ErrReplaced):
		return Refusal{http.StatusServiceUnavailable, "unavailable",
			"the database of the cluster does not answer: send it again later", ""}, true
	}
	return Refusal{}, false
}

// challenge returns a value for WWW-Authenticate.
func (a *Authenticator) challenge(path, failed string, scopes []string) string {
	var parts []string
	if failed != "" {
		parts = append(parts, `error="`+failed+`"`)
	}
	if len(scopes) > 0 {
		parts = append(parts, `scope="`+strings.Join(scopes, " ")+`"`)
	}
	if issuer := a.issuer(); issuer != nil {
		parts = append(parts, `resource_metadata="`+issuer.MetadataURL(path)+`"`)
	}
	return strings.TrimSpace("Bearer " + strings.Join(parts, ", "))
}

// first returns the scopes that a client without a token should request: those that a host needs.
func (a *Authenticator) first() []string {
	issuer := a.issuer()
	if issuer == nil {
		return nil
	}
	return issuer.scopesFor([]string{ScopeRun}, "")
}

// stepUp returns the scopes that a client with a token should request: those that it has and the
// one that it lacks, because the new token replaces the old one. The result is nil if no scope of
// the issuer gives the missing right.
func (a *Authenticator) stepUp(lacks *ScopeError) []string {
	who, issuer := lacks.Caller, a.issuer()
	if issuer == nil || who.Known() && who.Issuer == "" { // a token that Airlock issued
		return []string{lacks.Scope}
	}
	if len(issuer.scopesFor([]string{lacks.Scope}, "")) == 0 {
		return nil
	}
	profile := who.Profile
	if profile == a.profile() && !issuer.names(profile) {
		profile = "" // no scope has given it
	}
	return issuer.scopesFor(append([]string{lacks.Scope}, who.Scopes...), profile)
}
