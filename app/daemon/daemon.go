// Package daemon is what `airlock serve` is: one system for many hosts, over HTTP
// and over a socket of the user's own, with its health and an orderly end.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/app/server/code"
	"github.com/airlock-mcp/airlock/app/server/kernel"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/kernel/iatp"
)

// Options of a daemon. Config, System and Version are needed.
type Options struct {
	Config  *config.Config
	System  *system.System // stays open until the daemon is closed
	Version string
	URL     string       // where it is reached over HTTP; for its status
	Metrics http.Handler // answers /metrics, for callers with the scope audit; nil: there is no such path
	Logger  *slog.Logger // nil logs nothing
	Gateway Gateway      // what is set for the risk gateway
	Kernel  bool         // what /mcp shows is the kernel's tools, not those for models that write code
}

// Daemon serves hosts until it is closed.
type Daemon struct {
	opts     Options
	known    *system.Agents
	identify *auth.Authenticator
	face     *code.Server
	kernel   *kernel.Server
	gateway  riskGateway
	console  *console.Console // nil: there is none
	trust    *iatp.Service
	socket   *socket
	since    time.Time
	draining atomic.Bool
	stop     chan struct{} // holds the one request to end
	limits   limits        // of what is reached over HTTP
	fair     *fair         // each caller's share of it
	log      *slog.Logger  // what clients can cause, each message within a logLimit

	answering *inFlight // requests over HTTP other than open streams
	undo      cleanup.Stack
}

// New opens what serves hosts of a system. The caller closes it, before the system.
func New(ctx context.Context, opts Options) (*Daemon, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{opts: opts, since: time.Now().UTC().Truncate(time.Second), stop: make(chan struct{}, 1), limits: defaultLimits(), log: slog.New(newLimitedHandler(opts.Logger.Handler())), answering: newInFlight()}
	lock, err := lockState()
	if err != nil {
		return nil, err
	}
	d.undo.Add(lock.Release)
	if d.known, err = opts.System.OpenAgents(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.undo.Add(d.known.Close)
	d.fair = newFair(opts.Config.Serve.CallerRequests, d.known.Authority().WhileKnown)
	d.fair.proved = d.provedAccount
	d.identify = &auth.Authenticator{Tokens: d.known.Tokens(), Agents: d.known, Authority: d.known.Authority(), Profile: opts.Config.DefaultProfile, Admit: d.fair.admit, Refused: newRefusals(opts.Logger).note}
	if opts.Config.Auth.Issuer != "" {
		d.identify.Issuer = auth.NewIssuer(opts.Config.Auth, nil, nil)
		d.identify.Issuer.Unread(unreadKeys(opts.Logger))
		d.known.Authority().Accept(d.identify.Issuer)
	}
	if d.face, err = newFace(opts); err != nil {
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
	if !opts.Kernel { // what joins is a host whose model writes code
		if d.socket, err = openSocket(); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.undo.Add(d.socket.close)
	}
	return d, nil
}

// askToStop has Serve end in order.
func (d *Daemon) askToStop() {
	select {
	case d.stop <- struct{}{}:
	default: // it was asked already
	}
}

// newFace makes the face of hosts whose models write code.
func newFace(opts Options) (*code.Server, error) {
	s := opts.System
	return code.New(s, s.Runs(), code.Options{
		Version: opts.Version, Principal: system.Principal(), ServerIDs: s.ServerIDs(), Packages: code.Packages(s.Packages()), Approvals: s.Approvals(), Logger: s.Logger(), Gate: s.Gate(), WhileKnown: s.WhileKnown,
		Files: s.Attachments(), CallTool: s.Face().CallTool, Similar: s.Similar,
	})
}

// Close ends all sessions. Calling it twice is fine.
func (d *Daemon) Close() error { return d.undo.Run() }

// Serve answers HTTP on a listener, and hosts on the socket, until ctx ends or another
// process asks for the end; then new runs are refused, those
// under way get their time, what has begun is answered, and Serve returns.
func (d *Daemon) Serve(ctx context.Context, listener *Listener) error {
	web := d.webServer()
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stopWatching()
	watch.Go(func() { listener.watch(watching, d.opts.Logger) })
	ended := make(chan error, 1)
	go func() { ended <- listener.serve(web, d.limits.connections) }()
	hosts, endHosts := context.WithCancel(context.WithoutCancel(ctx))
	defer endHosts()
	if d.socket != nil {
		d.socket.work.Go(func() { d.acceptHosts(hosts) })
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	case <-d.stop:
	}
	err := d.drain(context.WithoutCancel(ctx), web, endHosts)
	<-ended
	return err
}

// drain ends in order: the address is reachable while runs end, and says that it
// takes no more.
func (d *Daemon) drain(ctx context.Context, web *http.Server, endHosts func()) error {
	d.draining.Store(true)
	Notify("STOPPING=1")
	ending, stop := context.WithTimeout(ctx, d.opts.Config.Serve.DrainTime)
	defer stop()
	if !d.opts.System.Runs().Drain(ending) {
		d.opts.Logger.WarnContext(ctx, "runs that were under way are ended: their time is over")
		d.opts.System.Runs().Close()
	}
	closing, stop := context.WithTimeout(ctx, d.limits.answerTime)
	defer stop()
	d.settle(closing)
	endHosts()
	over := make(chan struct{})
	go func() { // open streams end with their sessions
		d.face.Close()
		d.kernel.Close()
		d.closeGateway()
		close(over)
	}()
	err := web.Shutdown(closing)
	if errors.Is(err, context.DeadlineExceeded) { // who does not read its answer is cut off
		err = web.Close()
	}
	<-over
	return err
}

// settle waits until what was asked is answered, or ctx ends.
func (d *Daemon) settle(ctx context.Context) {
	settled := make(chan struct{})
	go func() { // ends when the connections do, at the latest
		d.face.Settle(ctx)
		d.answering.wait(ctx)
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}
