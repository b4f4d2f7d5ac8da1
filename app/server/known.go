package server

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
)

// answerTime is how long a session stays open after its caller is not accepted any more, so that its requests are
// answered with an error. Their work has ended before.
const answerTime = time.Second

// whileKnown ends requests, and sessions over HTTP, whose caller is not accepted any more.
// A request within a session does not end with its HTTP request, so the daemon's own check
// does not reach it.
func (t *Transport) whileKnown(watch func(context.Context, caller.Caller, func(error)) func()) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			who := t.Caller(ctx, req)
			if len(who.Credentials) == 0 {
				return next(ctx, method, req)
			}
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer watch(ctx, who, cancel)()
			if session, ok := req.GetSession().(*mcp.ServerSession); ok && IsHTTP(req) {
				t.sessions.bind(session, who, func() (stop func()) {
					return watch(context.WithoutCancel(ctx), who, func(error) {
						go t.endAnswered(who.Session, session.ID()) // it waits for the requests of the session
					})
				})
			}
			result, err := next(ctx, method, req)
			if why := context.Cause(ctx); errors.Is(why, caller.ErrEnded) || errors.Is(why, caller.ErrInactive) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why.Error()}
			}
			return result, err
		}
	}
}

// endAnswered is endSession after the requests of the session were answered, which are cancelled.
func (t *Transport) endAnswered(sessionID, protocolID string) {
	t.end(sessionID)
	select {
	case <-time.After(answerTime):
	case <-t.sessions.closing:
	}
	t.endSession(sessionID, protocolID)
}
