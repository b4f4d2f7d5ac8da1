// Package daemon implements `airlock serve`: it serves many hosts with one system, over HTTP
// and over a socket of the user, and provides health checks and a graceful shutdown.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/access"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/app/server/kernel"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// Options configures a Daemon. Config, System and Version are required.
type Options struct {
	Config  *config.Config
	System  *system.System // stays open until the daemon is closed
	Version string
	URL     string       // of its HTTP server; shown in the status
	Metrics http.Handler // answers /metrics, for callers with the scope audit; nil disables the path
	Logger  *slog.Logger // nil discards
	Gateway Gateway      // configures the risk gateway
	Kernel  bool         // /mcp serves the kernel's tools, not those for models that write code
}

// Daemon serves hosts until it is closed.
type Daemon struct {
	lifetime
	opts       Options
	known      *access.Agents
	identify   *auth.Authenticator
	issuer     atomic.Pointer[auth.Issuer] // whose tokens are accepted; nil: none is configured
	face       *code.Server
	kernel     *kernel.Server
	gateway    riskGateway
	console    *console.Console // nil if it is disabled
	lists      *listing.Lists
	trust      *iatp.Service
	socket     *socket
	limits     limits       // for requests over HTTP
	bounded    *bounded     // limits the concurrent requests
	localHosts *localHosts  // hosts on this machine that are connected over HTTP
	log        *slog.Logger // for events that clients can cause; each message has a logLimit

	undo cleanup.Stack
}

// lifetime is when a daemon began, and how it ends.
type lifetime struct {
	since    time.Time
	draining atomic.Bool
	stop     chan struct{} // holds at most one request to stop
}

// New returns a Daemon. The caller must close it before the system.
func New(ctx context.Context, opts Options) (*Daemon, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{opts: opts, limits: defaultLimits(), log: slog.New(newLimitedHandler(opts.Logger.Handler()))}
	d.since, d.stop = time.Now().UTC().Truncate(time.Second), make(chan struct{}, 1)
	lock, err := lockState()
	if err != nil {
		return nil, err
	}
	d.undo.Add(lock.Release)
	d.localHosts = newLocalHosts(opts.Logger, opts.Config.Serve.TrustedProxies)
	d.undo.Add(d.localHosts.close)
	opts.System.FindHosts(d.localHosts.find)
	if d.known, err = opts.System.OpenAgents(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.undo.Add(d.known.Close)
	requests := quota.For(quota.Requests)
	requests.Each = opts.Config.Serve.CallerRequests
	d.bounded = newBounded(requests, newInFlight(), d.known.Authority().WhileKnown)
	d.bounded.proved = d.provedAccount
	d.identify = &auth.Authenticator{Tokens: d.known.Tokens(), Agents: d.known, Authority: d.known.Authority(),
		Issuer: d.issuer.Load, Profile: func() string { return opts.System.Config().DefaultProfile },
		Roles: opts.System.Roles, Admit: d.bounded.admit, Refused: newRefusals(opts.Logger).note}
	d.acceptIssuer(opts.System.Config().Auth)
	opts.System.OnConfig(func(before, now *config.Config) {
		if !reflect.DeepEqual(before.Auth, now.Auth) {
			d.acceptIssuer(now.Auth)
		}
		d.known.Authority().Changed()
	})
	opts.System.ReportLoad(ctx)
	d.lists = listing.New(listing.Options{Node: opts.System.Node(), Runs: opts.System.Runs(), Log: opts.System.RunLog(),
		Audit: opts.System.Directories().Audit, Servers: opts.System.ServerStates, Clean: opts.System.Gate().Text,
		Attached: opts.System.Attachments()})
	if d.face, err = newFace(opts, d.lists.Files()); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.undo.Add(func() error { d.face.Close(); return nil })
	d.undo.Add(func() error { d.closeGateway(); return nil })
	if err := d.openKernel(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.openConsole(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.openWebhooks(ctx)
	if !opts.Kernel { // hosts on the socket get the tools for models that write code
		if d.socket, err = openSocket(); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.undo.Add(d.socket.close)
	}
	return d, nil
}

// acceptIssuer accepts the tokens of the configured issuer, and no others.
func (d *Daemon) acceptIssuer(c config.Auth) {
	var issuer *auth.Issuer
	if c.Issuer != "" {
		issuer = auth.NewIssuer(c, nil, nil)
		issuer.KeepKeys(d.issuer.Load())
		issuer.Unread(unreadKeys(d.opts.Logger))
	}
	d.issuer.Store(issuer)
	d.known.Authority().Accept(issuer)
}

// askToStop makes Serve shut down and return.
func (d *Daemon) askToStop() {
	select {
	case d.stop <- struct{}{}:
	default: // a request is pending
	}
}

// newFace creates the face for hosts whose models write code.
func newFace(opts Options, files code.Files) (*code.Server, error) {
	s := opts.System
	return code.New(s, s.Runs(), code.Options{
		Version: opts.Version, Principal: setup.Principal(), ServerIDs: s.ServerIDs,
		Packages: code.Packages(s.Packages()), Approvals: s.Approvals(), Logger: s.Logger(), Gate: s.Gate(),
		WhileKnown: s.Authority().WhileKnown,
		Files:      files, CallTool: s.Face().CallTool, Similar: s.Similar, Network: s.Network(), Changes: s,
		Mark: s.Node().Marker(), SessionKey: s.Node().Secret("sessions of callers"),
	})
}

// Close ends all sessions. It may be called twice.
func (d *Daemon) Close() error { return d.undo.Run() }

// Serve serves HTTP on a listener, and hosts on the socket, until ctx is done or another
// process requests a shutdown. Then it refuses new runs, waits up to serve.drainTime for the
// runs in progress, answers the requests in progress, and returns.
func (d *Daemon) Serve(ctx context.Context, listener *Listener) error {
	web := d.webServer()
	nodes := d.nodesServer()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stopWatching()
	watch.Go(func() { listener.watch(watching, d.opts.Logger) })
	ended := make(chan error, 1)
	go func() { ended <- listener.serve(web, d.limits.connections) }()
	forwarded := make(chan error, 1)
	go func() { forwarded <- d.opts.System.Node().Serve(nodes, d.lists.Answer) }()
	hosts, endHosts := context.WithCancel(context.WithoutCancel(ctx))
	defer endHosts()
	if d.socket != nil {
		d.socket.work.Go(func() { d.acceptHosts(hosts) })
	}
	var fenced error
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serving on %s: %w", listener.Addr(), err), nodes.Close())
	case <-ctx.Done():
	case <-d.stop:
	case <-d.opts.System.Lost(): // runs end at once
		fenced = cluster.ErrReplaced
		d.opts.System.Runs().Close()
	}
	err := d.drain(context.WithoutCancel(ctx), func() error {
		err := listener.Close()
		<-ended // Shutdown knows a connection only when Serve has accepted the next one, or has ended
		return err
	}, endHosts, web, nodes)
	<-forwarded
	return errors.Join(fenced, err)
}

// drain shuts the daemon down gracefully. The address stays reachable while runs end, and its
// readiness is "draining".
func (d *Daemon) drain(ctx context.Context, closeAddress func() error, endHosts func(), servers ...*http.Server) error {
	d.draining.Store(true)
	Notify("STOPPING=1")
	ending, stop := context.WithTimeout(ctx, d.opts.Config.Serve.DrainTime)
	defer stop()
	d.opts.System.Node().Leave(ending)
	if !d.opts.System.Runs().Drain(ending) {
		d.opts.Logger.WarnContext(ctx, "runs that were under way are ended: their time is over")
		d.opts.System.Runs().Close()
	}
	closing, stop := context.WithTimeout(ctx, d.limits.answerTime)
	defer stop()
	errs := []error{closeAddress()}
	d.settle(closing)
	endHosts()
	over := make(chan struct{})
	go func() { // open streams end with their sessions
		d.face.Close()
		d.kernel.Close()
		d.closeGateway()
		close(over)
	}()
	shut := make(chan error, len(servers))
	for _, s := range servers {
		go func() { shut <- shutDown(closing, s) }()
	}
	for range servers {
		errs = append(errs, <-shut)
	}
	<-over
	return errors.Join(errs...)
}

// shutDown waits until the requests of a server are answered, or ctx ends. Then it disconnects clients that do not read
// their answers.
func shutDown(ctx context.Context, s *http.Server) error {
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	return err
}

// settle waits until all requests are answered, or ctx is done.
func (d *Daemon) settle(ctx context.Context) {
	settled := make(chan struct{})
	go func() { // ends when the connections are closed, at the latest
		d.face.Settle(ctx)
		d.bounded.answering.wait(ctx)
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}
