package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// maxSubscriptions is how many resources of one server can be subscribed to.
const maxSubscriptions = 1000

// subscriptions are the resources of a server that somebody has subscribed to. A new session subscribes to them again.
type subscriptions struct {
	turn chan struct{} // held while the server is asked, so that nobody relies on a request that fails

	mu    sync.Mutex
	users map[string]int // by URI
}

// add counts a user. first reports whether it is the first of this URI, and ok whether there may be another URI.
func (s *subscriptions) add(uri string) (first, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[uri] == 0 && len(s.users) >= maxSubscriptions {
		return false, false
	}
	if s.users == nil {
		s.users = map[string]int{}
	}
	s.users[uri]++
	return s.users[uri] == 1, true
}

// remove reports whether the user was the last one of this URI.
func (s *subscriptions) remove(uri string) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.users[uri] {
	case 0:
		return false
	case 1:
		delete(s.users, uri)
		return true
	}
	s.users[uri]--
	return false
}

func (s *subscriptions) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.users))
}

// subscribe subscribes to a resource, unless somebody has. Updates reach Options.OnUpdated until Unsubscribe.
func (s *server) subscribe(ctx context.Context, name, uri string) (json.RawMessage, error) {
	session, err := s.connected(ctx)
	if err != nil {
		return nil, s.notConnected(ctx, name, err)
	}
	if declared := session.client.InitializeResult().Capabilities; declared == nil || declared.Resources == nil ||
		!declared.Resources.Subscribe {
		return nil, s.failure(name, ToolError, "the server has no subscriptions", false, nil)
	}
	select {
	case s.subscribed.turn <- struct{}{}:
		defer func() { <-s.subscribed.turn }()
	case <-ctx.Done():
		return nil, s.classify(ctx, name, answer{}, ctx.Err(), 0)
	}
	first, ok := s.subscribed.add(uri)
	switch {
	case !ok:
		return nil, s.failure(name, RateLimit, "too many resources of the server are subscribed to", true, nil)
	case first:
		err = session.subscribe(ctx, uri)
	}
	if err != nil {
		s.subscribed.remove(uri)
		if answered, ok := errors.AsType[*ResponseError](err); ok {
			return nil, s.failure(name, ToolError, "the server refused: "+foreignText(answered.Message), false, err)
		}
		session.lost(err)
		return nil, s.failure(name, TransientNetwork, "the server could not be asked", true, err)
	}
	return json.RawMessage("{}"), nil
}

// subscribe asks the server for updates of a resource, in the way of its revision, and returns when the server has
// agreed. The turn must be held.
func (s *session) subscribe(ctx context.Context, uri string) error {
	if s.protocol() >= modernProtocol {
		return s.listen(ctx, uri)
	}
	return s.ask(ctx, methodSubscribe, "uri", uri)
}

// listen opens the stream of a resource's updates, which lasts until unsubscribe. The SDK does not wait for the
// server's acknowledgement, and hides its refusal.
func (s *session) listen(ctx context.Context, uri string) error {
	e := newExchange(nil, nil)
	e.method = methodListen
	defer s.tap.forget(e)
	s.tap.listens.Store(e)
	if err := s.client.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		return err
	}
	if s.tap.listens.CompareAndSwap(e, nil) {
		return nil // nothing was sent, because the stream is open
	}
	err := s.agreed(ctx, e)
	if err != nil {
		err = errors.Join(err, s.client.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri}))
	}
	return err
}

// agreed waits until the server has acknowledged or refused a stream of updates.
func (s *session) agreed(ctx context.Context, e *exchange) error {
	if e.soFar().status == 0 {
		select {
		case <-e.over:
		case <-s.ended:
			return mcp.ErrConnectionClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch a := e.soFar(); {
	case a.refusal != nil:
		return &ResponseError{Code: a.refusal.Code, Message: a.refusal.Message, Data: a.refusal.Data}
	case a.status != 0:
		return fmt.Errorf("the server answered with the HTTP status %d", a.status)
	}
	return nil
}

// asListening has the tap see what the server answers to the request of listen.
func (t *tap) asListening(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if listen, ok := req.GetParams().(*mcp.SubscriptionsListenParams); ok &&
			len(listen.Notifications.ResourceSubscriptions) > 0 {
			if e := t.listens.Swap(nil); e != nil {
				ctx = withExchange(ctx, e)
			}
		}
		return next(ctx, method, req)
	}
}

// acknowledged notes that the server has opened a stream of updates (MCP 2026-07-28, Subscriptions). It may agree to
// less than it was asked for.
func (t *tap) acknowledged(params json.RawMessage) {
	var ack struct {
		Meta          map[string]any `json:"_meta"`
		Notifications struct {
			URIs []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if strictjson.UnmarshalOpen(params, &ack) != nil {
		return
	}
	id, err := jsonrpc.MakeID(ack.Meta[mcp.MetaKeySubscriptionID])
	if err != nil {
		return
	}
	t.mu.Lock()
	e := t.waiting[id]
	t.mu.Unlock()
	if e == nil || e.method != methodListen {
		return // the SDK's own, for changed lists
	}
	if len(ack.Notifications.URIs) == 0 {
		e.note(func(a *answer) {
			a.refusal = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "it sends no updates of this resource"}
		})
	}
	e.finish()
}

func (s *session) unsubscribe(ctx context.Context, uri string) error {
	if s.protocol() >= modernProtocol {
		return s.client.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
	}
	return s.ask(ctx, methodUnsubscribe, "uri", uri)
}

// ask sends a request with one member of a text, and an empty result.
func (s *session) ask(ctx context.Context, method, member, text string) error {
	quoted, err := json.Marshal(text)
	if err != nil {
		return err
	}
	e := newExchange(nil, nil)
	defer s.tap.forget(e)
	e.method, e.params, e.taken = method, map[string]json.RawMessage{member: quoted}, true
	err = e.unlessTaken(s.send(withExchange(ctx, e), e))
	if refused := e.soFar().refusal; err != nil && refused != nil {
		return &ResponseError{Code: refused.Code, Message: refused.Message, Data: refused.Data}
	}
	return err
}

// subscribeAgain has a new session subscribe to what former ones had subscribed to. Changes since then may have been
// missed, so each resource counts as updated.
func (s *server) subscribeAgain(session *session) {
	ctx, cancel := s.within(context.Background())
	defer cancel()
	select {
	case s.subscribed.turn <- struct{}{}:
		defer func() { <-s.subscribed.turn }()
	case <-ctx.Done():
		return
	}
	for _, uri := range s.subscribed.all() {
		ctx, cancel := context.WithTimeout(ctx, s.config.StartTimeout)
		err := session.subscribe(ctx, uri)
		cancel()
		if err != nil {
			s.opts.Logger.WarnContext(ctx, "a resource is not subscribed to any more",
				slog.String(telemetry.KeyServer, s.config.ID), slog.Any(telemetry.KeyError, err))
		} else if s.opts.OnUpdated != nil {
			s.opts.OnUpdated(s.config.ID, uri)
		}
	}
}

// Unsubscribe ends one user's subscription to a resource. A server that cannot be reached has none.
func (s *Set) Unsubscribe(ctx context.Context, serverID, uri string) error {
	server, ok := s.find(serverID)
	if !ok || !server.subscribed.remove(uri) {
		return nil
	}
	server.mu.Lock()
	session := server.session
	server.mu.Unlock()
	if session == nil || session.over() {
		return nil
	}
	ctx, cancel := server.within(ctx)
	defer cancel()
	return session.unsubscribe(ctx, uri)
}

// completes reports whether a server completes arguments. One that does not has nothing to propose.
func (s *session) completes() bool {
	declared := s.client.InitializeResult().Capabilities
	return declared != nil && declared.Completions != nil
}

// noCompletion is the result for such a server.
var noCompletion = json.RawMessage(`{"completion":{"values":[],"total":0,"hasMore":false}}`)

// special carries out the uses of features that are not one request each. handled reports that it did.
func (s *server) special(ctx context.Context, name string) (result json.RawMessage, handled bool, err error) {
	use, feature := catalog.SplitUse(name)
	switch use {
	case catalog.UseSubscribe:
		_, uri := catalog.SplitFeatureName(feature)
		result, err = s.subscribe(ctx, name, uri)
		return result, true, err
	case catalog.UseComplete:
		session, err := s.connected(ctx)
		if err != nil {
			return nil, true, s.notConnected(ctx, name, err)
		}
		return noCompletion, !session.completes(), nil
	}
	return nil, false, nil
}
