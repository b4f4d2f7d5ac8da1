package server

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/internal/caller"
)

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
						go t.endSession(who.Session, session.ID()) // it waits for the requests of the session
					})
				})
			}
			return next(ctx, method, req)
		}
	}
}
