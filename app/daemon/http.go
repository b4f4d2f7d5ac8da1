package daemon

import (
	"log/slog"
	"net/http"

	"github.com/airlock-mcp/airlock/app/api"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/problem"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// webServer returns the HTTP server with all paths of the daemon.
func (d *Daemon) webServer() *http.Server {
	serve := d.opts.Config.Serve
	mux := http.NewServeMux()
	node := d.opts.System.Node()
	opts := &server.HTTPOptions{Hosts: serve.Hosts, Origins: serve.Origins, Refuse: d.refuse}
	if node != nil { // without a cluster, no message is read to find out whose it is
		opts.Nodes = node
	}
	if d.opts.Kernel {
		mux.Handle("/mcp", d.kernel.Handler(d.caller, opts))
	} else {
		mux.Handle("/mcp", d.face.Handler(d.caller, opts))
		mux.Handle(kernelPath, d.kernel.Handler(d.caller, opts))
		mux.Handle(gatewayPath, d.gatewayHandler(opts))
	}
	mux.Handle("GET /.well-known/agent-keys", server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.agentKeys)))
	mux.Handle("GET "+iatp.ManifestPath+"{agent}",
		server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.agentManifest)))
	d.describeFaces(mux)
	mux.HandleFunc("/.well-known/", d.wellKnown)
	mux.Handle("/v1/", server.Guard(serve.Hosts, serve.Origins,
		api.New(api.Options{Agents: d.known, Remotes: d.trust, Admission: d.opts.System.Admission(),
			Verifications: d.opts.System.Verifications(), Taint: d.opts.System.Taint(), Identify: d.caller,
			Approvals: d.opts.System.Approvals(), Lists: d.lists, Silent: node.Silent,
			Coverage: d.opts.System.Coverage, SuspendedSince: d.opts.System.Runs().SuspendedSince,
			Refuse: d.identify.Refuse, Clean: d.opts.System.Gate().Text, Logger: d.log})))
	if d.console != nil {
		mux.Handle("/", d.console)
	}
	if d.opts.Metrics != nil {
		mux.Handle("GET "+metricsPath, server.Guard(serve.Hosts, serve.Origins, http.HandlerFunc(d.metrics)))
	}
	mux.HandleFunc("GET /healthz", d.alive)
	mux.HandleFunc("GET /readyz", d.ready)
	d.bounded.next = mux
	return &http.Server{
		Handler: withTimeouts(d.limits,
			&clients{serve.TrustedProxies, d.closing(node.FromClients(d.bounded))}),
		ReadHeaderTimeout: d.limits.headerTime, IdleTimeout: d.limits.idleTime, MaxHeaderBytes: d.limits.header,
		ConnContext: d.localHosts.accept, ConnState: d.localHosts.follow,
		// A client that sends a frame or a header slowly cannot answer a ping before its end.
		HTTP2:    &http.HTTP2Config{SendPingTimeout: d.limits.silentTime, PingTimeout: d.limits.headerTime},
		ErrorLog: slog.NewLogLogger(d.opts.Logger.Handler(), slog.LevelDebug),
	}
}

// closing has connections end with their next answer while the daemon drains, so that few are open at its end: a client
// whose request meets the end of its connection cannot know whether it was received.
func (d *Daemon) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// nodesServer returns the server of requests that other nodes of a cluster forward. It is called after webServer.
func (d *Daemon) nodesServer() *http.Server {
	return &http.Server{
		Handler:           withTimeouts(d.limits, d.bounded),
		ReadHeaderTimeout: d.limits.headerTime, IdleTimeout: d.limits.idleTime, MaxHeaderBytes: d.limits.header,
		ErrorLog: slog.NewLogLogger(d.opts.Logger.Handler(), slog.LevelDebug),
	}
}

// wellKnown answers requests below /.well-known/ that no other handler serves: with the metadata of
// the issuer, if there is one.
func (d *Daemon) wellKnown(w http.ResponseWriter, r *http.Request) {
	if issuer := d.issuer.Load(); issuer != nil && issuer.Describe(w, r, d.faces()...) {
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, http.StatusMethodNotAllowed, "method_not_allowed", "use GET")
		return
	}
	problem.Write(w, http.StatusNotFound, "not_found", "nothing is published at this path")
}

// faces are the paths of the MCP faces.
func (d *Daemon) faces() []string {
	if d.opts.Kernel {
		return []string{"/mcp"}
	}
	return []string{"/mcp", kernelPath, gatewayPath}
}
