package upstreams

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
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/broker/upstream"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// Callers carries calls of several principals. A sign-in belongs to one principal, so no connection
// carries calls of two principals if it has a sign-in: the connections of the catalog are those of
// the user who runs Airlock, each other principal that has signed in has its own, and the
// others share one that never signs a request, also after a person has signed in. Its methods are
// safe for concurrent use.
type Callers struct {
	catalog *Catalog

	own *quota.Table[ownKey, *ownSet]
	// unsigned has the sign-ins of principals whose calls use the shared connection. The state read of them counts for
	// a while if the database of a cluster does not answer.
	unsigned *quota.Table[ownKey, *oauth.Source]

	mu     sync.Mutex           // guards closed, and is held while a connection is added
	left   map[*ownSet]struct{} // of servers that were replaced; they finish their calls
	closed bool
	ending sync.WaitGroup
}

// ownKey identifies a connection. The principal is empty for the one that signs nothing. acting is who acts for the
// principal, as audit.Actor in JSON, if the server is told.
type ownKey struct{ principal, server, acting string }

// ownSet is the connection of one principal to one server.
type ownSet struct {
	set    *upstream.Set
	source *oauth.Source // that its credentials come from
}

var _ broker.CallersUpstream = (*Callers)(nil)

// NewCallers returns the connections of callers to the servers of a catalog. They must be closed before the catalog.
func NewCallers(c *Catalog) *Callers {
	limit := quota.For(quota.Connections)
	return &Callers{catalog: c, own: quota.NewTable[ownKey, *ownSet](limit),
		unsigned: quota.NewTable[ownKey, *oauth.Source](limit), left: map[*ownSet]struct{}{}}
}

// Call implements broker.Upstream for the user who runs Airlock.
func (c *Callers) Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return c.catalog.upstreams.Call(ctx, serverID, name, arguments)
}

// For implements broker.CallersUpstream.
func (c *Callers) For(who caller.Caller, acting *audit.Actor, serverID string) (broker.RelayingUpstream, func(),
	error) {
	server, found := c.catalog.config.Load().Server(serverID)
	if !found || !IsPersonal(server) {
		return c.catalog.upstreams, func() {}, nil
	}
	signIn := state.OAuthConfig(server)
	if !signIn.Delegate {
		acting = nil
	}
	isOwn := who.Kind == caller.Local || who.Kind == caller.User && who.Name() == setup.Principal()
	if isOwn && acting == nil {
		return c.catalog.upstreams, func() {}, nil
	}
	if !isOwn && signIn.Grant == oauth.Enterprise && !signIn.Exchanges() {
		return nil, nil, &upstream.CallError{ServerID: server.ID, Type: upstream.ToolError,
			Message: "the server is signed in to with the ID token of the user who runs Airlock, and answers no " +
				"other"}
	}
	key := ownKey{principal: who.Name(), server: serverID}
	if acting != nil {
		text, err := canon.Marshal(acting)
		if err != nil {
			return nil, nil, err
		}
		key.acting = string(text)
	}
	switch {
	case isOwn:
		key.principal = setup.Principal()
	case signIn.Delegate && who.Kind == caller.Agent: // the server is told that it acts for a person
		key.principal = who.Registrar
	}
	source, err := c.source(key, server)
	if err != nil {
		return nil, nil, err
	}
	if !source.IsKept() {
		key.principal, key.acting = "", ""
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
	if errors.As(err, new(*upstream.SignInError)) {
		return nil, u.source.NotSignedIn().CallError(name)
	}
	return result, err
}

// IsPersonal reports whether each principal signs in to a server itself.
func IsPersonal(server config.Server) bool {
	if !server.SignsIn() {
		return false
	}
	o := server.Settings.OAuth
	return o == nil || !o.Shared && slices.Contains(
		[]oauth.Grant{oauth.AuthorizationCode, oauth.Enterprise, oauth.TokenExchange}, oauth.Grant(o.Grant))
}

// source returns the sign-in of a principal: the one that its former calls have read, if it is known.
func (c *Callers) source(key ownKey, server config.Server) (*oauth.Source, error) {
	if own, known := c.own.Get(key); known {
		return own.source, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if source, done, known := c.unsigned.Use(key); known {
		done()
		return source, nil
	}
	source, err := c.catalog.opts.State.SignIn(server, key.principal,
		func(credential string) { c.catalog.opts.Redactors.All.Hold(credential) })
	if err != nil {
		return nil, err
	}
	if done, _, err := c.unsigned.Add(key.principal, key, source); err == nil { // otherwise the next call reads it
		done()
	}
	return source, nil
}

// take returns the connection with a key, and makes it if needed. It closes the least recently used
// connection if there are too many.
func (c *Callers) take(account string, key ownKey, server config.Server, source *oauth.Source) (own *ownSet,
	release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, upstream.ErrClosed
	}
	if own, release, known := c.own.Use(key); known {
		return own, release, nil
	}
	if own, err = c.connect(server, source, key); err != nil {
		return nil, nil, err
	}
	if key.principal == "" {
		account = "" // it is shared
	}
	release, idle, err := c.own.Add(account, key, own)
	for _, other := range idle {
		c.endLocked(other.Value, other.Value.set.Close)
	}
	if refused := (*quota.Refusal)(nil); errors.As(err, &refused) {
		refused.Count(context.Background())
		err = &upstream.CallError{Type: upstream.TransientNetwork,
			Message: "too many users call servers at once; try again", Retryable: true}
		return nil, nil, errors.Join(err, own.set.Close())
	}
	return own, release, err
}

// connect returns the connection of a principal, or one that signs nothing if the principal is empty.
func (c *Callers) connect(server config.Server, source *oauth.Source, key ownKey) (*ownSet, error) {
	made := configOf(server)
	made.Credentials, made.Met = source.Unsigned(), source.Met()
	if key.principal != "" {
		made.Credentials = source.Acting(json.RawMessage(key.acting))
	}
	set, err := upstream.New([]upstream.Config{made}, &upstream.Options{
		Logger: slog.New(errorsOnly{c.catalog.opts.Logger.Handler()}), Version: c.catalog.opts.Version,
		OnUpdated: c.catalog.changes.updates(func(string) string { return key.principal }),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting %q for a caller: %w", server.ID, err)
	}
	return &ownSet{set: set, source: source}, nil
}

// Forget ends the connections to servers, after the calls in flight.
func (c *Callers) Forget(serverIDs ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	replaced := func(key ownKey) bool { return slices.Contains(serverIDs, key.server) }
	c.unsigned.RemoveFunc(replaced)
	for _, own := range c.own.RemoveFunc(replaced) {
		c.endLocked(own, own.set.Drain)
	}
}

// endLocked ends a connection that is not in use any more, in the background: its server may be slow.
func (c *Callers) endLocked(own *ownSet, end func() error) {
	c.left[own] = struct{}{}
	c.ending.Go(func() {
		_ = end() // an error of an unused connection does not matter
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.left, own)
	})
}

// Close ends all connections. It may be called twice.
func (c *Callers) Close() error {
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
