package daemon

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/problem"
)

// caller returns the caller of an HTTP request. On the paths of MCP, the caller needs the
// scope run.
func (d *Daemon) caller(r *http.Request) (caller.Caller, error) {
	who, err := d.identify.Identify(r)
	if err != nil {
		return caller.Caller{}, err
	}
	if strings.HasSuffix(r.URL.Path, "/mcp") && !auth.Has(who, auth.ScopeRun) {
		return caller.Caller{}, &auth.ScopeError{Scope: auth.ScopeRun, Caller: who}
	}
	if r.URL.Path != metricsPath {
		d.localHosts.saw(r.Context())
	}
	who.Host = server.Announcement(r.UserAgent()) // a host on MCP announces itself in the protocol, too
	return who, nil
}

// proveTime is the timeout for looking up a caller whose network has reached its limit.
const proveTime = time.Second

// provedAccount returns the account of a request whose credential is valid.
func (d *Daemon) provedAccount(w http.ResponseWriter, r *http.Request) (account string, ok bool) {
	ctx, cancel := context.WithTimeout(r.Context(), proveTime)
	defer cancel()
	if who, err := d.identify.Proved(r.WithContext(ctx)); err == nil {
		return who.Account(), true
	}
	if d.console == nil {
		return "", false
	}
	// No limit counts the request yet, so it must not take long. An error means that there are no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(proveTime))
	return d.console.SignInAccount(r)
}

// refuse answers a request whose caller may not make it.
func (d *Daemon) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if refusal, ok := d.identify.Refuse(r.Context(), err, r.URL.Path); ok {
		refusal.Write(w)
		return
	}
	if r.Context().Err() == nil { // else the client ended its connection meanwhile
		d.log.ErrorContext(r.Context(), "a caller could not be looked up", slog.Any("error", err))
	}
	w.Header().Set("Retry-After", "1")
	problem.Write(w, http.StatusServiceUnavailable, "unavailable",
		"the caller could not be identified now: send the request again")
}
