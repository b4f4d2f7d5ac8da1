package daemon

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// localHosts are the processes of this user that have sent a request with a valid token over HTTP. A shell of such a
// host may not approve what the host asks for, just as one of a host on stdio. A person's browser has a cookie and no
// token.
//
// The kernel has no cheap answer to who is at the other end of a connection, so the processes are looked for shortly
// after a connection has its first request with a token, and again when the answer is needed.
type localHosts struct {
	log     *slog.Logger
	proxies *clients      // their connections are not those of hosts
	wake    chan struct{} // holds at most one request to look
	stopped chan struct{}
	working sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]procfs.Connection // connections that have had a request with a token
	known map[string]int                 // process IDs of hosts by their procfs.Name, as long as the processes live
}

// localConn is a connection from this machine.
type localConn struct {
	net.Conn
	procfs.Connection
}

const (
	// lookPause is the minimum time between two searches for new connections.
	lookPause = time.Second
	// mostHosts is the number of processes that are remembered. The ones beyond it are found only while they are
	// connected.
	mostHosts = 256
)

func newLocalHosts(log *slog.Logger, proxies []netip.Prefix) *localHosts {
	h := &localHosts{log: log, proxies: &clients{proxies: proxies}, wake: make(chan struct{}, 1),
		stopped: make(chan struct{}), open: map[net.Conn]procfs.Connection{}, known: map[string]int{}}
	h.working.Go(h.work)
	return h
}

func (h *localHosts) close() error {
	select {
	case <-h.stopped:
	default:
		close(h.stopped)
	}
	h.working.Wait()
	return nil
}

// work looks for the processes of new connections.
func (h *localHosts) work() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-h.stopped:
			return
		case <-h.wake:
		}
		select {
		case <-h.stopped:
			return
		case <-pause.C:
		}
		h.find()
		pause.Reset(lookPause)
	}
}

type localConnKey struct{}

// accept is the ConnContext hook of the server.
func (h *localHosts) accept(ctx context.Context, conn net.Conn) context.Context {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	to, toErr := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil || toErr != nil {
		return ctx
	}
	if at := plain(from.Addr()); at != plain(to.Addr()) && !at.IsLoopback() || h.proxies.trusted(at) {
		return ctx
	}
	return context.WithValue(ctx, localConnKey{}, localConn{conn, procfs.Connection{Local: from, Remote: to}})
}

// follow is the ConnState hook of the server.
func (h *localHosts) follow(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, conn)
	}
}

// saw notes that a request had a valid token.
func (h *localHosts) saw(ctx context.Context) {
	conn, ok := ctx.Value(localConnKey{}).(localConn)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.open[conn.Conn]; known || ctx.Err() != nil {
		return // the connection may be closed
	}
	h.open[conn.Conn] = conn.Connection
	select {
	case h.wake <- struct{}{}:
	default: // a search is due
	}
}

// find returns the processes of the hosts that are connected, or were and still live.
func (h *localHosts) find() []int {
	h.mu.Lock()
	open := slices.Collect(maps.Values(h.open))
	h.mu.Unlock()
	pids, err := procfs.Holders(open)
	if err != nil {
		h.log.WarnContext(context.Background(), "the hosts that are connected could not be listed",
			slog.Any(telemetry.KeyError, err))
	}
	found := map[string]int{}
	for _, pid := range pids {
		host := approval.HostOf(pid)
		if name, err := procfs.Name(host); err == nil {
			found[name] = host
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.known, func(name string, _ int) bool {
		lives, known := procfs.Lives(name)
		return known && !lives
	})
	for name, pid := range found {
		if len(h.known) < mostHosts {
			h.known[name] = pid
		}
	}
	maps.Copy(found, h.known)
	return slices.Sorted(maps.Values(found))
}
