package auth

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// Deferred is an Authority that is there before the tokens and agents are open. Until then, only callers without a
// credential may act. The zero value is ready to use. Its methods are safe for concurrent use.
type Deferred struct {
	known atomic.Pointer[Authority]
	node  atomic.Pointer[cluster.Node] // nil without a cluster

	mu      sync.Mutex
	waiting map[*waiting]struct{} // acts that began before the authority was open
}

// waiting is an act of a caller that began before the authority was open: a run that a former process suspended.
type waiting struct {
	watch func(known *Authority) (stop func())
	stop  func() // nil until it is watched
}

// Open has acts decided by known from now on, also those that began before.
func (a *Deferred) Open(known *Authority) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known.Store(known)
	for w := range a.waiting {
		w.stop = w.watch(known)
	}
}

// Close has acts decided as before Open.
func (a *Deferred) Close() { a.known.Store(nil) }

// SetNode has acts end when this process must not act as a node of a cluster.
func (a *Deferred) SetNode(node *cluster.Node) { a.node.Store(node) }

// MayAct returns an error if this process must not act as a node of a cluster.
func (a *Deferred) MayAct() error { return a.node.Load().Check() }

// Check returns an error if a caller may no longer act.
func (a *Deferred) Check(ctx context.Context, who caller.Caller) error {
	if err := a.MayAct(); err != nil {
		return err
	}
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
func (a *Deferred) While(ctx context.Context, who caller.Caller) (context.Context, func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.known.Load(); known != nil {
		return known.While(ctx, who)
	}
	if a.waiting == nil {
		a.waiting = map[*waiting]struct{}{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &waiting{watch: func(known *Authority) func() {
		inner, stop := known.While(ctx, who)
		detach := context.AfterFunc(inner, func() { cancel(context.Cause(inner)) })
		return func() { detach(); stop() }
	}}
	a.waiting[w] = struct{}{}
	return ctx, func() {
		a.mu.Lock()
		delete(a.waiting, w)
		stop := w.stop
		a.mu.Unlock()
		if stop != nil {
			stop()
		}
		cancel(context.Canceled)
	}
}

// MayApprove reports whether a caller who approved something may still approve.
func (a *Deferred) MayApprove(who caller.Caller) bool {
	return Has(who, ScopeApprove) && a.Check(context.Background(), who) == nil
}

// IsOwn is Authority.IsOwn. Until the tokens are open, nobody has a credential.
func (a *Deferred) IsOwn(who caller.Caller, asked []string) (bool, error) {
	if known := a.known.Load(); known != nil {
		return known.IsOwn(context.Background(), who, asked)
	}
	if len(who.Credentials) > 0 {
		return false, caller.ErrEnded
	}
	return false, nil
}

// WhileKnown calls ended when requests of a caller are no longer accepted, see Authority.
func (a *Deferred) WhileKnown(ctx context.Context, who caller.Caller, ended func(error)) (stop func()) {
	if known := a.known.Load(); known != nil {
		return known.WhileKnown(ctx, who, ended)
	}
	return func() {}
}
