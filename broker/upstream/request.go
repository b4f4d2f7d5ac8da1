package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Request is any request of the protocol.
type Request struct {
	Method string
	Params json.RawMessage // an object, or nil for none
	Relay  Relay           // nil: the server cannot ask a person, and notifications are dropped
}

// ResponseError is a JSON-RPC error from a server, unchanged.
type ResponseError struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

// Error shows the server's message.
func (e *ResponseError) Error() string {
	return fmt.Sprintf("the server answered with error %d: %s", e.Code, foreignText(e.Message))
}

// Do sends a request and returns the unchanged result. The result may ask for input first
// (MCP 2026-07-28, Multi Round-Trip Requests); the answers belong in the params of the next
// request. _meta is passed on except for members that describe Airlock. Do returns the errors
// of Call, and *ResponseError.
//
// Do is for programs between a client and a server. Use Call to call tools.
func (s *Set) Do(ctx context.Context, serverID string, request Request) (json.RawMessage, error) {
	server, ok := s.find(serverID)
	if !ok {
		return nil, &CallError{ServerID: serverID, ToolName: request.Method, Type: UnknownTool,
			Message: "there is no such server"}
	}
	members := map[string]json.RawMessage{}
	if len(request.Params) > 0 {
		if err := strictjson.UnmarshalOpen(request.Params, &members); err != nil || members == nil {
			return nil, fmt.Errorf("sending %q to server %q: the params are not an object", request.Method, serverID)
		}
	}
	ctx, cancel := server.within(ctx)
	defer cancel()
	ctx, timeout, stop := WithPausableTimeout(ctx, server.config.CallTimeout)
	defer stop()
	session, err := server.connected(ctx)
	if err != nil {
		return nil, server.notConnected(ctx, request.Method, err)
	}
	e := newExchange(request.Relay, timeout)
	e.method, e.params, e.taken = request.Method, members, true
	result, err := server.exchange(ctx, session, request.Method, e)
	if err != nil {
		return nil, err
	}
	return server.acceptAny(request.Method, result)
}

// exchange sends the request of an exchange and returns the result, or a *ResponseError or an error of Call. name is
// that of a tool or method, for errors.
func (s *server) exchange(ctx context.Context, session *session, name string, e *exchange) (json.RawMessage, error) {
	defer session.tap.forget(e)
	start := time.Now()
	err := e.unlessTaken(session.send(withExchange(ctx, e), e))
	got := e.soFar()
	switch {
	case err == nil:
		s.succeeded()
		return got.result, nil
	case got.refusal != nil && ctx.Err() == nil && !got.statusDecides():
		return nil, &ResponseError{Code: got.refusal.Code, Message: got.refusal.Message, Data: got.refusal.Data}
	}
	if session.lost(err); got.expired {
		session.broken.Store(true)
	}
	return nil, s.classify(ctx, name, got, err, time.Since(start))
}

// acceptAny checks a result of any method. It refuses requests for anything other than a
// person's answer.
func (s *server) acceptAny(method string, raw json.RawMessage) (json.RawMessage, error) {
	needs, err := inputOf(raw)
	if err != nil {
		return nil, s.failure(method, InvalidOutput, err.Error(), false, nil)
	}
	for _, want := range needs.requests {
		if why := s.refusalOf(want.Method); why != "" {
			return nil, s.failure(method, ToolError, why, false, nil)
		}
	}
	return raw, nil
}

// send writes the request of an exchange by way of a method of the SDK, whose
// params asWritten replaces.
func (s *session) send(ctx context.Context, e *exchange) error {
	if e.method == methodCallTool { // with the headers that the tool asks for
		var name string
		if strictjson.UnmarshalOpen(e.params["name"], &name) != nil {
			return errors.New("a call without the name of a tool")
		}
		_, err := s.client.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage("{}")})
		return err
	}
	_, err := s.client.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt"}})
	return err
}

// The members of _meta that describe the client and its capabilities. Airlock sets them.
var ownMeta = []string{
	"progressToken", askMark,
	mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities,
}

// written is the params of an exchange, in the place of those that the SDK made.
type written struct {
	mcp.ParamsBase
	members map[string]json.RawMessage
}

// MarshalJSON writes the members with the _meta of both.
func (w *written) MarshalJSON() ([]byte, error) {
	meta := map[string]json.RawMessage{}
	if raw, ok := w.members["_meta"]; ok {
		if err := strictjson.UnmarshalOpen(raw, &meta); err != nil || meta == nil {
			return nil, errors.New("the _meta of a request is not an object")
		}
		for _, name := range ownMeta {
			delete(meta, name)
		}
	}
	for name, value := range w.Meta {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		meta[name] = raw
	}
	all := map[string]any{}
	for name, raw := range w.members {
		all[name] = raw
	}
	delete(all, "_meta")
	if len(meta) > 0 {
		all["_meta"] = meta
	}
	return json.Marshal(all)
}

// asWritten sends an exchange with its params and method, if it has any.
func asWritten(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		e := exchangeOf(ctx)
		session, ok := req.GetSession().(*mcp.ClientSession)
		if e == nil || e.params == nil || !ok {
			return next(ctx, method, req)
		}
		params := &written{members: e.params}
		params.Meta = mcp.Meta{}
		maps.Copy(params.Meta, req.GetParams().GetMeta())
		if e.relay != nil {
			params.Meta["progressToken"] = e.token
			if level := e.relay.LogLevel(); level != "" {
				//lint:ignore SA1019 servers of this revision may still send log messages
				params.Meta[mcp.MetaKeyLogLevel] = level
			}
		}
		result, err := next(ctx, e.method, &mcp.ClientRequest[*written]{Session: session, Params: params})
		if err != nil || method == e.method {
			return result, err
		}
		return &mcp.CompleteResult{}, nil // of the method that the SDK was asked for; the tap has the real one
	}
}
