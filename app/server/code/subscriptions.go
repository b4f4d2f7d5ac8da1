package code

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Changes reports changes at the servers: *upstreams.Servers.
type Changes interface {
	// Follow sets functions that are called from now on. lists is called after each change of the definitions.
	// updated is called after a server has sent that a resource has changed; owner is the principal whose connection
	// it is, or empty for a connection that callers share. Follow must be called once, before the first request.
	Follow(lists func(before, now *catalog.Snapshot), updated func(owner, serverID, uri string))
	// Unsubscribe ends one subscription of a caller.
	Unsubscribe(ctx context.Context, who caller.Caller, serverID, uri string) error
}

// subscriptions are those of all sessions.
type subscriptions struct {
	limiter *quota.Limiter

	mu       sync.Mutex // guards what follows
	open     map[subscription]subscribed
	sessions map[string]map[subscription]bool // of open, by the caller's session
	shown    map[resource]map[string]int      // how many of open, by the URI that hosts see
}

// subscription is one of a host.
type subscription struct {
	session *mcp.ServerSession
	uri     string // that the host sees
}

// subscribed is the resource of a subscription at its server.
type subscribed struct {
	who  caller.Caller
	what resource
	unit *quota.Reservation
}

type resource struct{ serverID, uri string }

// has reports whether a subscription is open.
func (s *subscriptions) has(one subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.open[one]
	return has
}

// add reports whether the subscription was not open.
func (s *subscriptions) add(one subscription, to subscribed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.open[one]; has {
		return false
	}
	if s.open == nil {
		s.open, s.sessions = map[subscription]subscribed{}, map[string]map[subscription]bool{}
		s.shown = map[resource]map[string]int{}
	}
	s.open[one] = to
	if s.sessions[to.who.Session] == nil {
		s.sessions[to.who.Session] = map[subscription]bool{}
	}
	s.sessions[to.who.Session][one] = true
	if s.shown[to.what] == nil {
		s.shown[to.what] = map[string]int{}
	}
	s.shown[to.what][one.uri]++
	return true
}

// remove removes one subscription.
func (s *subscriptions) remove(one subscription) []subscribed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.open[one]; !has {
		return nil
	}
	return []subscribed{s.removeLocked(one)}
}

func (s *subscriptions) removeLocked(one subscription) subscribed {
	to := s.open[one]
	delete(s.open, one)
	if delete(s.sessions[to.who.Session], one); len(s.sessions[to.who.Session]) == 0 {
		delete(s.sessions, to.who.Session)
	}
	uris := s.shown[to.what]
	if uris[one.uri]--; uris[one.uri] == 0 {
		delete(uris, one.uri)
	}
	if len(uris) == 0 {
		delete(s.shown, to.what)
	}
	return to
}

// end removes the subscriptions of the session with an ID.
func (s *subscriptions) end(id string) (removed []subscribed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.sessions[id] {
		removed = append(removed, s.removeLocked(one))
	}
	return removed
}

// hears reports whether a subscription is to changes on the connection of an owner.
func (s *subscriptions) hears(one subscription, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, has := s.open[one]
	return has && (owner == "" || to.who.Name() == owner)
}

// urisOf returns the URIs under which hosts are subscribed to a resource.
func (s *subscriptions) urisOf(what resource) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.shown[what]))
}

// listenerKey carries the caller of subscriptions/listen to subscribe, which the SDK calls for each of its URIs without
// the facts of the request.
type listenerKey struct{}

// subscribe subscribes a host to a resource of a server, by the same rules as reading it.
func (s *Server) subscribe(ctx context.Context, req *mcp.SubscribeRequest) error {
	who, listens := ctx.Value(listenerKey{}).(caller.Caller)
	if !listens {
		who = s.Caller(ctx, req)
	}
	unknown := mcp.ResourceNotFoundError(req.Params.URI)
	if _, _, own := attachment.ParseURI(req.Params.URI); own || !who.Known() || s.changes == nil {
		return unknown
	}
	one := subscription{req.Session, req.Params.URI}
	if s.subscriptions.has(one) {
		return nil
	}
	id, uri := serverOf(s.startedAll(ctx, who), req.Params.URI)
	if id == "" {
		return unknown
	}
	call := orchestrator.ToolCall{ServerID: id, Host: true,
		Name: catalog.UseName(catalog.UseSubscribe, catalog.FeatureName(catalog.KindResource, uri))}
	unit, err := s.subscriptions.limiter.Take(who.Account(), 1)
	if err != nil {
		return internalError(err.Error())
	}
	if err := s.use(ctx, who, req, call, unknown, &struct{}{}); err != nil {
		unit.Release()
		return err
	}
	s.Follow(req, who)
	if to := (subscribed{who, resource{id, uri}, unit}); !s.subscriptions.add(one, to) {
		s.unsubscribeAll(ctx, []subscribed{to})
	}
	return nil
}

func (s *Server) unsubscribe(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	s.unsubscribeAll(ctx, s.subscriptions.remove(subscription{req.Session, req.Params.URI}))
	return nil
}

// unsubscribeAll ends subscriptions at their servers.
func (s *Server) unsubscribeAll(ctx context.Context, all []subscribed) {
	for _, to := range all {
		to.unit.Release()
		if err := s.changes.Unsubscribe(context.WithoutCancel(ctx), to.who, to.what.serverID, to.what.uri); err != nil {
			s.logger.DebugContext(ctx, "a subscription could not be ended",
				slog.String(telemetry.KeyServer, to.what.serverID), slog.Any(telemetry.KeyError, err))
		}
	}
}

// ownerMark is the member of _meta with the owner of the connection, between updated and announce.
const ownerMark = "airlock/owner"

// updated notifies the hosts that are subscribed to a resource that it has changed.
func (s *Server) updated(owner, serverID, uri string) {
	for _, shown := range s.subscriptions.urisOf(resource{serverID, uri}) {
		// An error means that a host is gone, and with it its subscription.
		_ = s.mcp.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: shown,
			Meta: mcp.Meta{ownerMark: owner}})
	}
}

// listsChanged notifies hosts that lists have changed: the SDK does so for a feature that is added again.
func (s *Server) listsChanged(before, now *catalog.Snapshot) {
	changed := catalog.ChangedKinds(before, now)
	if slices.Contains(changed, catalog.KindTool) { // what search_tools finds
		s.addSearch()
	}
	if slices.Contains(changed, catalog.KindPrompt) {
		s.addPrompt()
	}
	if slices.Contains(changed, catalog.KindResource) || slices.Contains(changed, catalog.KindTemplate) {
		s.addResources()
	}
}

// announce drops notifications that are not for the host of a session: lists before the first message of the host, and
// changes on the connection of another principal.
func (s *Server) announce(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		switch params := req.GetParams().(type) {
		case *mcp.ToolListChangedParams, *mcp.PromptListChangedParams, *mcp.ResourceListChangedParams:
			if session.InitializeParams() == nil {
				return nil, nil
			}
		case *mcp.ResourceUpdatedNotificationParams:
			owner, _ := params.Meta[ownerMark].(string)
			if !s.subscriptions.hears(subscription{session, params.URI}, owner) {
				return nil, nil
			}
			own := &mcp.ResourceUpdatedNotificationParams{URI: params.URI, Meta: mcp.Meta{}}
			for name, value := range params.Meta {
				if name != ownerMark {
					own.Meta[name] = value
				}
			}
			req = &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{Session: session, Params: own}
		}
		return next(ctx, method, req)
	}
}

// maxCompletions is how many values a completion has (MCP 2025-11-25, Completion).
const maxCompletions = 100

// complete completes an argument of a server's prompt, or a variable of its resource template.
func (s *Server) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	who := s.Caller(ctx, req)
	ref := req.Params.Ref
	unknown := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: s.Gate().Sentence("nothing is known to complete for " + quote(ref.Name+ref.URI))}
	if !who.Known() {
		return nil, unknown
	}
	res := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	if ref.Name == ownPrompt || ref.URI == attachment.Template {
		return res, nil
	}
	feature, found := referred(s.startedAll(ctx, who), ref)
	if !found {
		return nil, unknown
	}
	arguments := map[string]any{"argument": req.Params.Argument}
	if req.Params.Context != nil {
		arguments["context"] = req.Params.Context
	}
	if feature.Kind == catalog.KindTemplate {
		arguments["uri"] = feature.Identifier()
	}
	call, err := toolCall(feature.ServerID, catalog.UseName(catalog.UseComplete, feature.Name), arguments)
	if err != nil {
		return nil, err
	}
	if err := s.use(ctx, who, req, call, unknown, res); err != nil {
		return nil, err
	}
	if n := len(res.Completion.Values); n > maxCompletions {
		res.Completion.Values, res.Completion.HasMore = res.Completion.Values[:maxCompletions], true
		res.Completion.Total = max(res.Completion.Total, n)
	}
	for i, value := range res.Completion.Values {
		res.Completion.Values[i] = catalog.Clean(value)
	}
	return res, nil
}

// referred returns the prompt or the template that a host refers to.
func referred(snapshot *catalog.Snapshot, ref *mcp.CompleteReference) (catalog.Tool, bool) {
	if ref.Type != "ref/resource" {
		return promptNamed(snapshot, ref.Name)
	}
	for _, f := range snapshot.FeaturesOf(catalog.KindTemplate) {
		if f.Identifier() == ref.URI {
			return f, true
		}
	}
	return catalog.Tool{}, false
}
