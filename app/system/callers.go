package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// callers carries calls of several principals. A sign-in belongs to one principal, so no connection
// carries calls of two principals if it has a sign-in: the connections of the catalog are those of
// the user whom Airlock runs for, each other principal that has signed in has its own, and the
// others share one that never signs a request, also after a person has signed in. Its methods are
// safe for concurrent use.
type callers struct {
	catalog *Catalog

	own *quota.Table[ownKey, *ownSet]

	mu     sync.Mutex           // guards closed, and is held while a connection is added
	left   map[*ownSet]struct{} // of servers that were replaced; they finish their calls
	closed bool
	ending sync.WaitGroup
}

// ownKey identifies a connection. The principal is empty for the one that signs nothing.
type ownKey struct{ principal, server string }

// ownSet is the connection of one principal to one server.
type ownSet struct {
	set    *upstream.Set
	source *oauth.Source // that its credentials come from
}

var _ broker.CallersUpstream = (*callers)(nil)

func newCallers(c *Catalog) *callers {
	return &callers{catalog: c, own: quota.NewTable[ownKey, *ownSet](quota.For(quota.Connections)),
		left: map[*ownSet]struct{}{}}
}

// Call implements broker.Upstream for the user that Airlock runs for.
func (c *callers) Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return c.catalog.upstreams.Call(ctx, serverID, name, arguments)
}

// For implements broker.CallersUpstream.
func (c *callers) For(who caller.Caller, serverID string) (broker.RelayingUpstream, func(), error) {
	server, found := c.catalog.config.Load().Server(serverID)
	if !found || who.Kind == caller.Local || who.Kind == caller.User && who.Name() == Principal() {
		return c.catalog.upstreams, func() {}, nil
	}
	if !isPersonal(server) {
		return c.catalog.upstreams, func() {}, nil
	}
	if o := server.Settings.OAuth; o != nil && oauth.Grant(o.Grant) == oauth.Enterprise {
		return nil, nil, &upstream.CallError{ServerID: server.ID, Type: upstream.ToolError,
			Message: "the server is signed in to with the ID token of the user whom Airlock runs for, and answers no " +
				"other"}
	}
	key := ownKey{who.Name(), serverID}
	source, err := c.source(key, server)
	if err != nil {
		return nil, nil, err
	}
	if !source.IsKept() {
		key.principal = ""
	}
	own, release, err := c.take(who.Account(), key, server, source)
	if err != nil {
		return nil, nil, err
	}
	if key.principal == "" {
		return unsigned{own.set, source}, release, nil
	}
	return own.set, release, nil
}

// unsigned carries calls of a principal that has not signed in, over a connection that others
// share.
type unsigned struct {
	*upstream.Set
	source *oauth.Source // of the principal
}

// Call implements broker.Upstream.
func (u unsigned) Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return u.CallFor(ctx, nil, serverID, name, arguments)
}

// CallFor implements broker.RelayingUpstream. An error about a missing sign-in is about the
// caller's own.
func (u unsigned) CallFor(ctx context.Context, relay upstream.Relay, serverID, name string,
	arguments json.RawMessage) (json.RawMessage, error) {
	result, err := u.Set.CallFor(ctx, relay, serverID, name, arguments)
	var needed *upstream.SignInError
	if errors.As(err, &needed) {
		return nil, u.source.NotSignedIn().CallError(name)
	}
	return result, err
}

// isPersonal reports whether each principal signs in to a server itself.
func isPersonal(server config.Server) bool {
	if !server.SignsIn() {
		return false
	}
	o := server.Settings.OAuth
	return o == nil || !o.Shared && (oauth.Grant(o.Grant) == oauth.AuthorizationCode ||
		oauth.Grant(o.Grant) == oauth.Enterprise)
}

// source returns the sign-in of a principal: that of its connection, which has been read, if there
// is one.
func (c *callers) source(key ownKey, server config.Server) (*oauth.Source, error) {
	if own, known := c.own.Get(key); known {
		return own.source, nil
	}
	return SignIn(server, key.principal, c.catalog.opts.Version,
		func(credential string) { c.catalog.opts.gate.all.Hold(credential) })
}

// take returns the connection with a key, and makes it if needed. It closes the least recently used
// connection if there are too many.
func (c *callers) take(account string, key ownKey, server config.Server, source *oauth.Source) (own *ownSet,
	release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, upstream.ErrClosed
	}
	if own, release, known := c.own.Use(key); known {
		return own, release, nil
	}
	if own, err = c.connect(server, source, key.principal); err != nil {
		return nil, nil, err
	}
	if key.principal == "" {
		account = "" // it is shared
	}
	release, idle, err := c.own.Add(account, key, own)
	for _, other := range idle {
		_ = other.Value.set.Close() // an error of an idle connection does not matter
	}
	if refused := (*quota.Refusal)(nil); errors.As(err, &refused) {
		refused.Count(context.Background())
		err = &upstream.CallError{Type: upstream.TransientNetwork,
			Message: "too many users call servers at once; try again", Retryable: true}
		return nil, nil, errors.Join(err, own.set.Close())
	}
	return own, release, err
}

// connect returns the connection of a principal, or one that signs nothing if principal is empty.
func (c *callers) connect(server config.Server, source *oauth.Source, principal string) (*ownSet, error) {
	made := upstreamConfig(server)
	made.Credentials, made.Met = source.Unsigned(), source.Met()
	if principal != "" {
		made.Credentials = source
	}
	set, err := upstream.New([]upstream.Config{made}, &upstream.Options{
		Logger: slog.New(errorsOnly{c.catalog.opts.Logger.Handler()}), Version: c.catalog.opts.Version,
		OnUpdated: c.catalog.changes.updates(func(string) string { return principal }),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting %q for a caller: %w", server.ID, err)
	}
	return &ownSet{set: set, source: source}, nil
}

// forget ends the connections to servers, after the calls in flight.
func (c *callers) forget(serverIDs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, own := range c.own.RemoveFunc(func(key ownKey) bool { return slices.Contains(serverIDs, key.server) }) {
		c.left[own] = struct{}{}
		c.ending.Go(func() {
			_ = own.set.Drain() // an error of an unused connection does not matter
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.left, own)
		})
	}
}

// Close ends all connections. It may be called twice.
func (c *callers) Close() error {
	c.mu.Lock()
	c.closed = true
	sets := slices.Collect(maps.Keys(c.left))
	c.mu.Unlock()
	var failed error
	for _, own := range append(sets, c.own.Clear()...) {
		failed = errors.Join(failed, own.set.Close())
	}
	c.ending.Wait()
	return failed
}
