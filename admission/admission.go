// Package admission decides whether an act may happen: a run, a call, an announced action, a
// verification or an action of the kernel. Decide is the only entry, and decide.go has the order of
// its steps. See docs/design/0034-one-place-that-decides.md.
package admission

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/quota"
)

// Log records every decision. It is an audit.Log.
type Log interface {
	Append(ctx context.Context, r audit.Record) error
	Note(ctx context.Context, r audit.Record) error
	NoteKept(ctx context.Context, r audit.Record) error
	Sync() error
	Hash(b []byte) string
}

// Options of a service. Log is required.
type Options struct {
	Rules  Rules
	Log    Log
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Service decides about acts. Its methods are safe for concurrent use.
type Service struct {
	opts    Options
	rules   atomic.Pointer[Rules]
	buckets Buckets                   // of servers and tools
	agents  atomic.Pointer[agentGate] // nil until OpenAgents
	refused *quota.Limiter            // of records of refused calls
}

// New returns a service that permits nothing to agents until OpenAgents is called.
func New(opts Options) (*Service, error) {
	if opts.Log == nil {
		return nil, errors.New("admission needs an audit log")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	rules, err := opts.Rules.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{opts: opts, refused: quota.New(quota.For(quota.Refusals))}
	s.rules.Store(rules)
	return s, nil
}
