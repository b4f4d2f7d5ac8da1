package daemon

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/health"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// alive answers that the process is running.
func (d *Daemon) alive(w http.ResponseWriter, _ *http.Request) {
	writeState(w, http.StatusOK, "ok", "")
}

// ready answers whether a run can start now. The reason why not is only logged, since
// everyone may read the answer.
func (d *Daemon) ready(w http.ResponseWriter, r *http.Request) {
	if d.draining.Load() {
		writeState(w, http.StatusServiceUnavailable, "draining", "no new runs are made")
		return
	}
	err := d.opts.System.Ready(r.Context())
	switch {
	case err == nil:
		detail := ""
		if _, pending := d.opts.System.Pending(); pending {
			detail = "a changed configuration is not in force: airlock status says why"
		}
		writeState(w, http.StatusOK, "ready", detail)
	case health.IsStarting(err):
		writeState(w, http.StatusServiceUnavailable, "starting", "no run can be made yet")
	default:
		d.log.WarnContext(r.Context(), "no run can be made", slog.Any("error", err))
		writeState(w, http.StatusServiceUnavailable, "unavailable", "no run can be made: airlock status shows why")
	}
}

// metricsPath is the path of the metrics.
const metricsPath = "/metrics"

// metrics answers with the metrics in Prometheus' text format. They name servers and
// tools, so they are for callers who may read the audit log.
func (d *Daemon) metrics(w http.ResponseWriter, r *http.Request) {
	who, err := d.caller(r)
	if err == nil && !who.May(caller.People, caller.See, caller.Object{Kind: caller.Log}) {
		err = &auth.ScopeError{Scope: auth.ScopeAudit, Caller: who}
	}
	if err != nil {
		d.refuse(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	d.opts.Metrics.ServeHTTP(w, r)
}

// writeState writes a state as the answer.
func writeState(w http.ResponseWriter, status int, state, detail string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct { // an error means that the client has disconnected
		State  string `json:"state"`
		Detail string `json:"detail,omitempty"`
	}{state, detail})
}
