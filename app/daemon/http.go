package daemon

import (
	"log/slog"
	"net/http"

	"github.com/airlock-mcp/airlock/app/api"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// webServer returns the HTTP server with all paths of the daemon.
func (d *Daemon) webServer() *http.Server {
	serve := d.opts.Config.Serve
	mux := http.NewServeMux()
	opts := &server.HTTPOptions{Hosts: serve.Hosts, Origins: serve.Origins, Refuse: d.refuse}
	if d.opts.Kernel {
		mux.Handle("/mcp", d.kernel.Handler(d.caller, opts))
	} else {
		mux.Handle("/mcp", d.face.Handler(d.caller, opts))
		mux.Handle(kernelPath, d.kernel.Handler(d.caller, opts))
		mux.Handle(gatewayPath, d.gatewayHandler(opts))
	}
	mux.Handle("GET /.well-known/agent-keys", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.agentKeys)))
	mux.Handle("GET "+iatp.ManifestPath+"{agent}", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.agentManifest)))
	mux.HandleFunc("/.well-known/", nothingKnown)
	mux.Handle("/v1/", server.Guard(serve.Hosts, serve.Origins,
		api.New(api.Options{Agents: d.known, Verifications: d.opts.System.Verifications(), Identify: d.caller, Refuse: d.identify.Refuse, Logger: d.log})))
	if d.console != nil {
		mux.Handle("/", d.console)
	}
	if d.opts.Metrics != nil {
		mux.Handle("GET /metrics", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.metrics)))
	}
	mux.HandleFunc("GET /healthz", d.alive)
	mux.HandleFunc("GET /readyz", d.ready)
	if d.identify.Issuer != nil {
		d.identify.Issuer.Describe(mux, d.faces()...)
	}
	return &http.Server{
		Handler:           patient(d.limits, &clients{serve.TrustedProxies, &bounded{next: mux, room: make(chan struct{}, d.limits.requests), fair: d.fair, answering: d.answering}}),
		ReadHeaderTimeout: d.limits.headerTime, IdleTimeout: d.limits.idleTime, MaxHeaderBytes: d.limits.header,
		ErrorLog: slog.NewLogLogger(d.opts.Logger.Handler(), slog.LevelDebug),
	}
}

// nothingKnown answers requests below /.well-known/ that no other handler serves.
func nothingKnown(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, http.StatusMethodNotAllowed, "method_not_allowed", "use GET")
		return
	}
	problem.Write(w, http.StatusNotFound, "not_found", "nothing is published at this path")
}

// bounded limits the number of concurrent requests, of all callers together and of each
// caller. It refuses further requests immediately.
type bounded struct {
	next http.Handler
	room chan struct{}
	fair *fair

	answering *inFlight // counts requests other than open streams
}

// ServeHTTP answers one request. The limits do not apply to health checks.
func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		b.next.ServeHTTP(w, r)
		return
	}
	b.fair.serve(w, r, http.HandlerFunc(b.inRoom))
}

// inRoom answers a request, or refuses it if the limit for all callers is reached.
func (b *bounded) inRoom(w http.ResponseWriter, r *http.Request) {
	select {
	case b.room <- struct{}{}:
		defer func() { <-b.room }()
		if r.Method != http.MethodGet {
			defer b.answering.begin()()
		}
		b.next.ServeHTTP(w, r)
	default:
		telemetry.CountRefusedRequest(r.Context(), limitAll)
		w.Header().Set("Retry-After", "1")
		problem.Write(w, http.StatusServiceUnavailable, "busy", "too many requests are being answered: send it again")
	}
}

// faces are the paths of the MCP faces.
func (d *Daemon) faces() []string {
	if d.opts.Kernel {
		return []string{"/mcp"}
	}
	return []string{"/mcp", kernelPath, gatewayPath}
}
