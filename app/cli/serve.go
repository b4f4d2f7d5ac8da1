package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/airlock-mcp/airlock/app/api"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/system"
)

type serveVerb struct {
	configFlag
	Listen string `default:"127.0.0.1:7823" placeholder:"ADDRESS" help:"The loopback address and port; port 0 takes a free one."`
}

// Limits of one connection. Bodies are bounded by who reads them.
const (
	headerTime  = 10 * time.Second
	requestTime = time.Minute
	idleTime    = 2 * time.Minute
	maxHeader   = 32 << 10
	drainTime   = 10 * time.Second
)

// Run serves until ctx ends, and then answers what it has begun. The address is
// printed on stdout once it can be reached.
func (v *serveVerb) Run(ctx context.Context, s *streams) error {
	c, err := v.load(s.err)
	if err != nil {
		return err
	}
	logger := newLogger(s.err, false, slog.LevelWarn)
	known, err := system.OpenAgents(ctx, c, system.Options{Version: version, Logger: logger}, true)
	if err != nil {
		return err
	}
	listener, err := server.Listen(ctx, v.Listen)
	if err != nil {
		return errors.Join(err, known.Close())
	}
	err = v.serve(ctx, s, listener, known, logger)
	return errors.Join(err, known.Close())
}

func (v *serveVerb) serve(ctx context.Context, s *streams, listener net.Listener, known *system.Agents, logger *slog.Logger) error {
	identify := (&auth.Authenticator{Tokens: known.Tokens(), Agents: known}).Identify
	mux := http.NewServeMux()
	mux.Handle("/v1/", api.New(api.Options{Agents: known, Identify: identify, Logger: logger}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	web := &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	fmt.Fprintf(s.out, "http://%s\n", listener.Addr())
	select {
	case err := <-ended:
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	draining, stop := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer stop()
	return web.Shutdown(draining)
}
