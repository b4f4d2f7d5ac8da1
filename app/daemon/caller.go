package daemon

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// caller says who makes an HTTP request, with the default profile where the
// credential names none.
func (d *Daemon) caller(r *http.Request) (caller.Caller, error) {
	who, err := d.identify.Identify(r)
	if err != nil {
		return caller.Caller{}, err
	}
	if who.Profile == "" {
		who.Profile = d.opts.Config.DefaultProfile
	}
	if strings.HasSuffix(r.URL.Path, "/mcp") && !auth.Has(who, auth.ScopeRun) {
		return caller.Caller{}, &auth.ScopeError{Scope: auth.ScopeRun}
	}
	return who, nil
}

// refuse answers a request of /mcp whose caller may not make it (RFC 6750, section 3;
// RFC 9728, section 5.1).
func (d *Daemon) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var scope *auth.ScopeError
	switch {
	case errors.As(err, &scope):
		d.challenge(w, "insufficient_scope", scope.Scope)
		http.Error(w, scope.Error(), http.StatusForbidden)
	case errors.Is(err, auth.ErrProfiles):
		d.challenge(w, "insufficient_scope", "")
		http.Error(w, err.Error(), http.StatusForbidden)
	case errors.Is(err, auth.ErrNone):
		d.challenge(w, "", auth.ScopeRun)
		http.Error(w, "the request has no token: send it as Authorization: Bearer", http.StatusUnauthorized)
	case errors.Is(err, auth.ErrInvalid):
		d.challenge(w, "invalid_token", "")
		http.Error(w, "the token is not valid", http.StatusUnauthorized)
	default:
		d.opts.Logger.ErrorContext(r.Context(), "a caller could not be looked up", "error", err)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "who calls could not be looked up: send it again", http.StatusServiceUnavailable)
	}
}

// challenge says how to get a token that will do: with which scope, and where what is
// known of us is.
func (d *Daemon) challenge(w http.ResponseWriter, problem, right string) {
	var parts []string
	if problem != "" {
		parts = append(parts, `error="`+problem+`"`)
	}
	if issuer := d.identify.Issuer; issuer != nil {
		if scopes := issuer.ScopesFor(right); len(scopes) > 0 {
			parts = append(parts, `scope="`+scopes[0]+`"`)
		}
		parts = append(parts, `resource_metadata="`+issuer.MetadataURL()+`"`)
	} else if problem == "insufficient_scope" && right != "" {
		parts = append(parts, `scope="`+right+`"`)
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(parts, ", ")))
}

// metadata says who signs in for us (RFC 9728, section 3). It is for everyone, programs
// in web pages included.
func (d *Daemon) metadata(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(d.identify.Issuer.Metadata()) // an error means that the client has disconnected
}
