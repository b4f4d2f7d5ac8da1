package daemon

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/health"
	"github.com/airlock-mcp/airlock/app/join"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxHosts is the maximum number of connections of hosts.
const maxHosts = 1000

// acceptPause is the pause after Accept fails, for example because the limit of open files is
// reached.
const acceptPause = 100 * time.Millisecond

// socket is the Unix socket on which hosts of the same user join the daemon.
type socket struct {
	listener *net.UnixListener
	path     string

	joined atomic.Int64
	slots  chan struct{}
	work   sync.WaitGroup
}

// lockState locks the state directory for this daemon. The kernel releases the lock when the
// process ends for any reason. Two daemons never serve one state directory, even if their
// configurations and environments differ.
func lockState() (*store.Lock, error) {
	path, err := join.Path()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the socket: %w", err)
	}
	lock, err := store.TryAcquire(path+".lock", store.Exclusive)
	if errors.Is(err, store.ErrLocked) {
		return nil, alreadyRunning()
	}
	if err != nil {
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	return lock, nil
}

// openSocket creates the socket on which hosts join. The caller must hold the lock of the
// state directory.
func openSocket() (*socket, error) {
	path, err := join.Path()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a daemon that was killed
		return nil, err
	}
	address, done, err := join.ShortPath(path)
	if err != nil {
		return nil, fmt.Errorf("listening for hosts: %w", err)
	}
	defer done()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening for hosts: %w", err)
	}
	listener.SetUnlinkOnClose(false)              // at Close the short path may be that of another file
	if err := os.Chmod(path, 0o600); err != nil { // only the user can access its directory already
		return nil, errors.Join(err, listener.Close())
	}
	return &socket{listener: listener, path: path, slots: make(chan struct{}, maxHosts)}, nil
}

// close stops listening, and waits for the connections. They end with the ctx of acceptHosts.
func (s *socket) close() error {
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	s.work.Wait()
	if removed := os.Remove(s.path); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// acceptHosts accepts connections until the socket is closed. Accepted connections are closed
// when ctx is done, at the latest.
func (d *Daemon) acceptHosts(ctx context.Context) {
	for {
		conn, err := d.socket.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			d.log.WarnContext(ctx, "a host could not join", slog.Any("error", err))
			time.Sleep(acceptPause)
			continue
		}
		d.socket.slots <- struct{}{}
		d.socket.work.Go(func() {
			defer func() { <-d.socket.slots }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if err := d.take(ctx, conn); err != nil && ctx.Err() == nil {
				d.opts.Logger.DebugContext(ctx, "a connection of a host ended", slog.Any("error", err))
			}
		})
	}
}

// take answers one connection.
func (d *Daemon) take(ctx context.Context, conn *net.UnixConn) error {
	if err := conn.SetDeadline(time.Now().Add(join.HelloTime)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	line, err := join.HelloLine(in)
	if err != nil {
		return err
	}
	var h join.Hello
	if err := strictjson.UnmarshalOpen(line, &h); err != nil {
		return refuseHost(conn, "the first line is not a greeting")
	}
	if err := join.Trust(conn, h.Purpose); err != nil {
		return refuseHost(conn, err.Error())
	}
	if h.Purpose == join.PurposeRun { // without the full status, which takes a while to compute
		profile, why := d.fit(h)
		if why != "" {
			return refuseHost(conn, why)
		}
		if err := json.NewEncoder(conn).Encode(
			join.Reply{Status: &join.Status{PID: os.Getpid(), Version: d.opts.Version}}); err != nil {
			return err
		}
		return d.serveRun(ctx, conn, in, profile)
	}
	status := d.status(ctx)
	switch h.Purpose {
	case join.PurposeStatus:
		return json.NewEncoder(conn).Encode(join.Reply{Status: &status})
	case join.PurposeConsole:
		link, err := d.consoleLink(conn)
		if err != nil {
			return refuseHost(conn, err.Error())
		}
		return json.NewEncoder(conn).Encode(join.Reply{Status: &status, Link: &link})
	case join.PurposeRestart:
		return d.done(conn, status, d.opts.System.RestartServer(ctx, owner(), h.Server))
	case join.PurposeSuspend:
		return d.done(conn, status, d.opts.System.Orchestrator().Suspend(h.Run))
	case join.PurposeResume:
		return d.done(conn, status, d.opts.System.Orchestrator().Resume(h.Run))
	case join.PurposeGrants:
		grants, err := d.opts.System.Approvals().Grants(ctx)
		if err != nil {
			return refuseHost(conn, err.Error())
		}
		return follows(conn, status, grants)
	case join.PurposeList:
		list, err := d.list(ctx, h)
		if err != nil {
			return refuseHost(conn, err.Error())
		}
		return follows(conn, status, list)
	case join.PurposeWithdraw:
		withdrawn, err := d.opts.System.Approvals().Withdraw(ctx, h.Grant, setup.Principal()+", command line",
			func(approval.Grant) bool { return true }) // the user of this machine
		if err == nil && !withdrawn {
			err = &setup.Error{Err: errors.New("there is no such grant"), Advice: "airlock approvals grants"}
		}
		return d.done(conn, status, err)
	case join.PurposeLog:
		lines, err := d.opts.System.ServerLog(owner(), h.Server)
		if err != nil {
			return refuseHost(conn, err.Error())
		}
		if err := json.NewEncoder(conn).Encode(join.Reply{Status: &status}); err != nil {
			return err
		}
		_, err = io.WriteString(conn, strings.Join(lines, "\n"))
		return err
	case join.PurposeServers:
		return follows(conn, status, d.opts.System.ServerStates(owner()))
	case join.PurposeStop:
		if err := json.NewEncoder(conn).Encode(join.Reply{Status: &status}); err != nil {
			return err
		}
		d.askToStop()
		<-ctx.Done()
		return nil
	case join.PurposeHost:
	default:
		return refuseHost(conn, fmt.Sprintf("the daemon does not know the purpose %q", h.Purpose))
	}
	if _, why := d.fit(h); why != "" {
		return refuseHost(conn, why)
	}
	local := d.local(h)
	if _, err := local(ctx); err != nil {
		return refuseHost(conn, err.Error())
	}
	if err := json.NewEncoder(conn).Encode(join.Reply{Status: &status}); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return d.serveHost(ctx, conn, in, local)
}

// follows answers a request with the status and a text in JSON.
func follows(conn net.Conn, status join.Status, text any) error {
	to := json.NewEncoder(conn)
	if err := to.Encode(join.Reply{Status: &status}); err != nil {
		return err
	}
	return to.Encode(text)
}

// done answers a request that was carried out, or failed with err.
func (d *Daemon) done(conn net.Conn, status join.Status, err error) error {
	if err != nil {
		refused := join.Reply{Refused: err.Error()}
		if advised := (interface{ Hint() string })(nil); errors.As(err, &advised) {
			refused.Advice = advised.Hint()
		}
		return json.NewEncoder(conn).Encode(refused)
	}
	return json.NewEncoder(conn).Encode(join.Reply{Status: &status})
}

// owner is the user who runs Airlock. This user sees and restarts all servers.
func owner() caller.Caller {
	return caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Session: "socket",
		Scopes: []string{auth.ScopeAdmin}}
}

// local returns a function that identifies the caller of each request of a host. The caller is
// the user, or the agent whose token the host has sent; the token is validated every time.
func (d *Daemon) local(h join.Hello) server.Local {
	profile := func() string { return cmp.Or(h.Profile, d.opts.System.Config().DefaultProfile) }
	if h.Agent == "" {
		return func(context.Context) (caller.Caller, error) {
			return caller.Caller{Principal: setup.Principal(), Kind: caller.Local, Profile: profile()}, nil
		}
	}
	token := secret.New(h.Agent)
	return func(ctx context.Context) (caller.Caller, error) {
		who, err := d.identify.Agent(ctx, token)
		if err == nil {
			who.Profile, err = auth.Narrower(who.Profile, profile())
		}
		return who, err
	}
}

// fit returns the profile of a host. If the daemon would serve the host differently than
// Airlock without a daemon, fit returns the reason to refuse it.
func (d *Daemon) fit(h join.Hello) (profile, why string) {
	c := d.opts.System.Config()
	switch {
	case d.draining.Load():
		return "", "the daemon is ending"
	case h.Version != d.opts.Version:
		return "", fmt.Sprintf("the daemon is version %s", d.opts.Version)
	case h.Source != "" && h.Purpose == join.PurposeRun:
		if why := unread(c, h.Source); why != "" {
			return "", why
		}
	case h.Config != config.Digest(c):
		return "", "the daemon has another configuration in force than the one that would be read now"
	}
	seen, err := c.Profile(h.Profile)
	switch {
	case err != nil:
		return "", err.Error()
	case seen == nil:
		return "", ""
	}
	return seen.Name, ""
}

// unread returns why a client must read the configuration itself: it may differ from the one
// in force, or it has findings that the client must print.
func unread(c *config.Config, source string) string {
	switch {
	case source != c.Source():
		return "the daemon has read another file than the one that would be read now"
	case len(config.Lint(c)) > 0:
		return "the configuration has findings, which each command tells"
	}
	return ""
}

func refuseHost(conn net.Conn, why string) error {
	return json.NewEncoder(conn).Encode(join.Reply{Refused: why})
}

// serveHost serves one host until either end closes. The process that talks to the connected one is
// the agent's host, see procfs.Host; processes of that host may not approve calls.
func (d *Daemon) serveHost(ctx context.Context, conn *net.UnixConn, in io.Reader, local server.Local) error {
	pid, _, err := procfs.Peer(conn)
	if err != nil {
		return err
	}
	host, err := procfs.Host(pid)
	if err != nil {
		return fmt.Errorf("finding the agent's host: %w", err)
	}
	d.socket.joined.Add(1)
	defer d.socket.joined.Add(-1)
	return d.face.ServeConnection(ctx, in, conn, server.Connection{
		Local: local, Process: pid,
		Began: func(session string) (ended func()) { return d.opts.System.Approvals().AddHost(session, host) },
	})
}

// status returns the current status of the daemon.
func (d *Daemon) status(ctx context.Context) join.Status {
	s := join.Status{
		PID: os.Getpid(), Version: d.opts.Version, URL: d.opts.URL, Since: d.since, State: "ready",
		Hosts: int(d.socket.joined.Load()), Runs: d.opts.System.Runs().Going(),
		Suspended: d.opts.System.Runs().Suspended(),
	}
	if err := d.opts.System.Ready(ctx); err != nil {
		s.State, s.Reason = "starting", err.Error()
		if !health.IsStarting(err) {
			s.State = "unavailable"
		}
	}
	if d.draining.Load() {
		s.State = "draining"
	}
	if pending, ok := d.opts.System.Pending(); ok {
		s.Pending, s.PendingHint = pending.Text, pending.Hint
	}
	return s
}
