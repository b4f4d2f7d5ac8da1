package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// maxOwnSets is how many callers' own connections are kept.
const maxOwnSets = 128

// callers carries calls of several principals. A sign-in is one person's: callers that
// are not the user whom Airlock runs for call servers with their own, over connections
// of their own, and never with that user's. Its methods may be called concurrently.
type callers struct {
	catalog *Catalog

	mu     sync.Mutex
	own    map[ownKey]*ownSet
	closed bool
}

type ownKey struct{ principal, server string }

// ownSet is the connection of one principal to one server.
type ownSet struct {
	set    *upstream.Set
	source *oauth.Source
	users  int
	last   time.Time
}

var _ broker.CallersUpstream = (*callers)(nil)

func newCallers(c *Catalog) *callers { return &callers{catalog: c, own: map[ownKey]*ownSet{}} }

// Call implements broker.Upstream, for the user whom Airlock runs for.
func (c *callers) Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return c.catalog.upstreams.Call(ctx, serverID, name, arguments)
}

// For implements broker.CallersUpstream.
func (c *callers) For(who caller.Caller, serverID string) (broker.RelayingUpstream, func(), error) {
	at := slices.IndexFunc(c.catalog.config.Servers, func(s config.Server) bool { return s.ID == serverID })
	if at < 0 || who.Kind == caller.Local || who.Name() == Principal() {
		return c.catalog.upstreams, func() {}, nil
	}
	server := c.catalog.config.Servers[at]
	if !isPersonal(server) {
		return c.catalog.upstreams, func() {}, nil
	}
	own, err := c.take(server, who.Name())
	if err != nil {
		return nil, nil, err
	}
	release := func() { c.release(own) }
	if shared := c.catalog.sources[serverID]; !own.source.IsKept() && (shared == nil || !shared.IsKept()) {
		release() // no user has signed in: the requests are the same for all
		return c.catalog.upstreams, func() {}, nil
	}
	return own.set, release, nil
}

// isPersonal reports whether a sign-in to a server is one person's.
func isPersonal(server config.Server) bool {
	if !server.SignsIn() {
		return false
	}
	o := server.Settings.OAuth
	return o == nil || !o.Shared && (oauth.Grant(o.Grant) == oauth.AuthorizationCode || oauth.Grant(o.Grant) == oauth.Enterprise)
}

// take returns the connection of a principal, and makes it where there is none.
func (c *callers) take(server config.Server, principal string) (*ownSet, error) {
	if o := server.Settings.OAuth; o != nil && oauth.Grant(o.Grant) == oauth.Enterprise {
		return nil, &upstream.CallError{ServerID: server.ID, Type: upstream.ToolError, Message: "the server is signed in to with the ID token of the user whom Airlock runs for, and answers no other"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, upstream.ErrClosed
	}
	key := ownKey{principal, server.ID}
	own := c.own[key]
	if own == nil {
		var err error
		if err = c.makeRoomLocked(); err == nil {
			own, err = c.connect(server, principal)
		}
		if err != nil {
			return nil, err
		}
		c.own[key] = own
	}
	own.users++
	own.last = time.Now()
	return own, nil
}

func (c *callers) connect(server config.Server, principal string) (*ownSet, error) {
	source, err := SignIn(server, principal, c.catalog.opts.Version, func(credential string) { c.catalog.opts.gate.all.Hold(credential) })
	if err != nil {
		return nil, err
	}
	made := upstreamConfig(server)
	made.Credentials = source
	set, err := upstream.New([]upstream.Config{made}, &upstream.Options{
		Logger: slog.New(errorsOnly{c.catalog.opts.Logger.Handler()}), Version: c.catalog.opts.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting %q for a caller: %w", server.ID, err)
	}
	return &ownSet{set: set, source: source}, nil
}

// makeRoomLocked lets go of the connection that was not used for the longest time.
func (c *callers) makeRoomLocked() error {
	if len(c.own) < maxOwnSets {
		return nil
	}
	var oldest ownKey
	for key, own := range c.own {
		if own.users == 0 && (oldest == ownKey{} || own.last.Before(c.own[oldest].last)) {
			oldest = key
		}
	}
	if oldest == (ownKey{}) {
		return &upstream.CallError{Type: upstream.TransientNetwork, Message: "too many users call servers at once; try again", Retryable: true}
	}
	idle := c.own[oldest]
	delete(c.own, oldest)
	return idle.set.Close()
}

func (c *callers) release(own *ownSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own.users--
}

// Close ends all connections. Calling it twice is fine.
func (c *callers) Close() error {
	c.mu.Lock()
	c.closed = true
	sets := c.own
	c.own = nil
	c.mu.Unlock()
	var failed error
	for _, own := range sets {
		failed = errors.Join(failed, own.set.Close())
	}
	return failed
}
