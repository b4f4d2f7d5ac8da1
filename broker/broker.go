// Package broker carries out one tool call from the code to an upstream server: identify, find,
// validate, limit, decide, ask, record, call, validate, redact, record, answer. Every call, direct
// or from inside code, takes this path.
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/redact"
)

// Upstream sends a call to a server. Call is safe for concurrent use and returns when ctx ends. It
// returns the CallToolResult unchanged, even if the tool itself failed (isError). An
// *upstream.CallError contains the message for the code; any other error is only logged.
type Upstream interface {
	Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error)
}

// Recorder is the audit log. Its methods are safe for concurrent use. *audit.Log implements it and
// documents the contract.
type Recorder interface {
	Append(ctx context.Context, r audit.Record) error
	Note(ctx context.Context, r audit.Record) error
	NoteSoon(r audit.Record) error
	Hash(b []byte) string
	Arguments(v any) json.RawMessage
}

// Approver asks people. Ask is safe for concurrent use. It blocks until there is an answer, the
// question has expired, or ctx ends. It returns an error if ctx ends or nobody can be asked.
type Approver interface {
	Ask(ctx context.Context, q approval.Question) (approval.Verdict, error)
}

// HostAsker is an Approver that knows whether the host of a session asks its people.
type HostAsker interface {
	Approver
	AsksHost(sessionID string) bool
}

// Options of a broker. Nil and zero values are the safe defaults.
type Options struct {
	Approver Approver         // nil: no person can be asked, so calls that need approval are refused
	Redactor *redact.Redactor // nil: a redactor without credentials
	// Definitions returns current definitions of tools. If it is nil, those of the run's snapshot
	// are used.
	Definitions Definitions
	// Authority decides which callers may still act. If it is nil, only callers without a
	// credential may.
	Authority Authority
	// Taint keeps what conversations have read. If it is nil, rules about the session deny the calls
	// of callers with a lineage.
	Taint Taint
	// SignIns lets people sign in while a call waits. If it is nil, the call fails with the command that signs in.
	SignIns SignIns
	Logger  *slog.Logger // nil discards
	Now     func() time.Time
}

// Broker carries out calls. All methods are safe for concurrent use.
type Broker struct {
	upstream  Upstream
	recorder  Recorder
	admission *admission.Service
	opts      Options
	inputs    schema.Cache // by definition digest
	outputs   schema.Cache
	large     *quota.Limiter // for large results

	mu       sync.Mutex // guards sessions
	sessions map[string]*sessionFacts
}

// New returns a broker that sends the calls that decisions permits to upstream and records them in
// recorder. All three are required.
func New(upstream Upstream, recorder Recorder, decisions *admission.Service, opts *Options) (*Broker, error) {
	if upstream == nil || recorder == nil || decisions == nil {
		return nil, errors.New("a broker needs upstream servers, an audit log and admission")
	}
	b := &Broker{upstream: upstream, recorder: recorder, admission: decisions, sessions: map[string]*sessionFacts{},
		large: quota.New(quota.For(quota.LargeResults))}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Approver == nil {
		b.opts.Approver = approval.None{}
	}
	if b.opts.Authority == nil {
		b.opts.Authority = localAuthority{}
	}
	if b.opts.Redactor == nil {
		b.opts.Redactor = redact.New()
	}
	if b.opts.Logger == nil {
		b.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if b.opts.Now == nil {
		b.opts.Now = time.Now
	}
	return b, nil
}

// Limits returns the current limits. The caller must not modify its map.
func (b *Broker) Limits() admission.Limits { return b.admission.Rules().Limits }

// Open starts the calls of one run, with the tools of one snapshot that its caller can see. The
// caller must close the RunCalls. opts may be nil. The error is ErrSessions, or that the caller's
// profile is unknown.
func (b *Broker) Open(run Run, snapshot *catalog.Snapshot, opts *RunOptions) (*RunCalls, error) {
	snapshot, err := b.admission.View(run.Caller, snapshot)
	if err != nil {
		return nil, fmt.Errorf("beginning run %q: %w", run.ID, err)
	}
	limits := b.Limits()
	s := &RunCalls{
		broker: b, identity: newIdentity(run), snapshot: snapshot, limits: limits,
		slots:    semaphore.NewWeighted(int64(limits.Concurrent)),
		searches: admission.NewBucket(limits.CatalogRate),
		counts:   runCounts{Used: Used{Approval: approval.NotRequired}, refused: map[refusedFor]int{}},
		flags:    map[*catalog.Snapshot]map[string][]catalog.Flag{},
		active:   activeCalls{cancels: map[string]context.CancelFunc{}},
	}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Redactor == nil {
		s.opts.Redactor = b.opts.Redactor
	}
	s.waiting.changed = s.opts.OnWait
	s.resume(s.opts.Before)
	if s.opts.Admitted != nil {
		s.counts.Approval = s.opts.Admitted.Approval
	}
	if s.facts, err = b.openFacts(s); err != nil {
		return nil, fmt.Errorf("beginning run %q: %w", run.ID, err)
	}
	return s, nil
}
