package system

import (
	"context"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// authority decides whether callers may still act. Until the tokens and agents are open, only
// callers without a credential may act.
type authority struct {
	known atomic.Pointer[auth.Authority]
}

var _ broker.Authority = (*authority)(nil)

// Check implements broker.Authority.
func (a *authority) Check(ctx context.Context, who caller.Caller) error {
	if who.Kind == caller.Contained {
		return nil // it is in force while it runs
	}
	if known := a.known.Load(); known != nil {
		return known.Check(ctx, who)
	}
	if len(who.Credentials) > 0 || who.Kind != caller.Local {
		return caller.ErrEnded
	}
	return nil
}

// While returns a context that ends when the caller may no longer act.
func (a *authority) While(ctx context.Context, who caller.Caller) (context.Context, func()) {
	if known := a.known.Load(); known != nil {
		return known.While(ctx, who)
	}
	return ctx, func() {}
}

// mayApprove reports whether a caller who approved something may still approve.
func (a *authority) mayApprove(who caller.Caller) bool {
	return auth.Has(who, auth.ScopeApprove) && a.Check(context.Background(), who) == nil
}

// WhileKnown calls ended when requests of a caller are no longer accepted, see auth.Authority.
func (s *System) WhileKnown(ctx context.Context, who caller.Caller, ended func(error)) (stop func()) {
	if known := s.authority.known.Load(); known != nil {
		return known.WhileKnown(ctx, who, ended)
	}
	return func() {}
}
