package passthrough

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/broker/upstream"
)

// mirror is an MCP server that has what the upstream server has.
type mirror struct {
	id     string
	set    *upstream.Set
	server *mcp.Server

	changes chan func() // for the announcements of the upstream server, in order
	stop    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	tools   []string
	prompts []string
}

// newMirror connects to the server and copies what it has.
func newMirror(ctx context.Context, config upstream.Config) (*mirror, error) {
	m := &mirror{id: config.ID, changes: make(chan func(), 64), stop: make(chan struct{})}
	set, err := upstream.New([]upstream.Config{config}, &upstream.Options{
		OnChange: func(string) { m.later(m.copyTools) },
		OnNotice: func(_, method string, params json.RawMessage) { m.later(func() { m.notice(ctx, method, params) }) },
	})
	if err != nil {
		return nil, err
	}
	m.set = set
	m.server = mcp.NewServer(&mcp.Implementation{Name: "passthrough", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(ctx context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return forward(ctx, m, "completion/complete", r.Params, nil, &mcp.CompleteResult{})
		},
		SubscribeHandler: func(ctx context.Context, r *mcp.SubscribeRequest) error {
			return m.pass(ctx, "resources/subscribe", r.Params)
		},
		UnsubscribeHandler: func(ctx context.Context, r *mcp.UnsubscribeRequest) error {
			return m.pass(ctx, "resources/unsubscribe", r.Params)
		},
	})
	m.server.AddReceivingMiddleware(m.passLogLevel)
	set.Connect(ctx)
	if err := errors.Join(set.Problem(config.ID), m.copyAll(ctx)); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	m.running.Go(m.followChanges)
	return m, nil
}

// later queues a function to run after the previous one. It does not block, because it is
// called by the goroutine that reads the server's messages.
func (m *mirror) later(do func()) {
	select {
	case m.changes <- do:
	case <-m.stop:
	default:
	}
}

func (m *mirror) followChanges() {
	for {
		select {
		case do := <-m.changes:
			do()
		case <-m.stop:
			return
		}
	}
}

func (m *mirror) close() error {
	close(m.stop)
	m.running.Wait()
	return m.set.Close()
}

// notice forwards a notification of the server.
func (m *mirror) notice(ctx context.Context, method string, params json.RawMessage) {
	switch method {
	case "notifications/prompts/list_changed":
		_ = m.copyPrompts(ctx) // prompts that can no longer be listed are not shown as changed
	case "notifications/resources/updated":
		var p mcp.ResourceUpdatedNotificationParams
		if json.Unmarshal(params, &p) == nil {
			_ = m.server.ResourceUpdated(ctx, &p) // a client that is gone needs no update
		}
	case "notifications/message":
		for session := range m.server.Sessions() {
			relayTo(ctx, session, nil).Notify(method, params)
		}
	}
}

// passLogLevel also sets the client's log level at the server.
func (m *mirror) passLogLevel(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if method == "logging/setLevel" {
			if err := m.pass(ctx, method, r.GetParams()); err != nil {
				return nil, err
			}
		}
		return next(ctx, method, r)
	}
}

// pass forwards a request with an empty result.
func (m *mirror) pass(ctx context.Context, method string, params any) error {
	_, err := forward(ctx, m, method, params, nil, &struct{}{})
	return err
}

// forward sends a request to the server and decodes its result.
func forward[T any](ctx context.Context, m *mirror, method string, params any, via *relay, into T) (T, error) {
	var none T
	raw, err := json.Marshal(params)
	if err != nil {
		return none, err
	}
	request := upstream.Request{Method: method, Params: raw}
	if via != nil {
		request.Relay = via
	}
	result, err := m.set.Do(ctx, m.id, request)
	if err != nil {
		return none, asAnswered(err)
	}
	if err := json.Unmarshal(result, into); err != nil {
		return none, fmt.Errorf("reading the answer to %q: %w", method, err)
	}
	return into, nil
}

// asAnswered returns the error that the server answered with as one of the SDK.
func asAnswered(err error) error {
	var answered *upstream.ResponseError
	if errors.As(err, &answered) {
		return &jsonrpc.Error{Code: answered.Code, Message: answered.Message, Data: answered.Data}
	}
	return err
}
