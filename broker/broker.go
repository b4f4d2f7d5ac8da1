// Package broker carries one tool call from the code to an upstream server:
// identify, find, validate, limit, decide, ask, record, call, validate, redact,
// record, answer. Every call, direct or from inside code, takes this one path.
package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/policies"
	"github.com/airlock-mcp/airlock/redact"
)

// Upstream carries a call to a server. Call may be used concurrently and
// returns when ctx ends. It returns the CallToolResult as it arrived, also when
// the tool itself failed (isError). An *upstream.CallError tells the code why
// there is no result; of any other error only the log hears.
type Upstream interface {
	Call(ctx context.Context, serverID, name string, arguments json.RawMessage) (json.RawMessage, error)
}

// Recorder is the audit log. Its methods may be used concurrently.
// *audit.Log has all of them; see there for what they promise.
type Recorder interface {
	Append(ctx context.Context, r audit.Record) error
	Note(ctx context.Context, r audit.Record) error
	Hash(b []byte) string
	Arguments(v any) json.RawMessage
}

// Approver asks people. Ask may be used concurrently. It blocks until there is
// an answer, the question has expired, or ctx ends, which is its only error
// beside not being able to ask.
type Approver interface {
	Ask(ctx context.Context, q approval.Question) (approval.Verdict, error)
}

// Options of a broker. Nil and zero values are the safe defaults.
type Options struct {
	Policies *policies.Engine  // nil denies everything
	Operator policies.Operator // what the configuration says about servers
	Approver Approver          // nil: no person can be asked, so what asks is refused
	Redactor *redact.Redactor  // nil: one that holds no credential
	Limits   Limits            // zero members mean DefaultLimits
	// Definitions says how tools are defined now; nil: as in the run's snapshot.
	Definitions Definitions
	// Profiles are those that callers may have, by name. A run of a caller with
	// another one is refused.
	Profiles map[string]*catalog.Profile
	// Agents decides what agents may do; nil: they may do nothing.
	Agents Agents
	// Authority decides which callers may still act; nil: those without a credential.
	Authority Authority
	Logger    *slog.Logger // nil discards
	Now       func() time.Time
	// Elicitation names the servers that may ask the person behind a call, as far as the
	// rules permit it and the Upstream is a RelayingUpstream.
	Elicitation map[string]bool
}

// Broker carries calls. All methods may be called concurrently.
type Broker struct {
	upstream Upstream
	recorder Recorder
	opts     Options
	rules    atomic.Pointer[Rules]
	inputs   schema.Cache // by definition digest
	outputs  schema.Cache
	rates    rates

	mu       sync.Mutex // guards sessions
	sessions map[string]*sessionFacts
}

// New returns a broker that calls upstream and records in recorder. Without
// either there is nothing it could do.
func New(upstream Upstream, recorder Recorder, opts *Options) (*Broker, error) {
	if upstream == nil || recorder == nil {
		return nil, errors.New("a broker needs upstream servers and an audit log")
	}
	b := &Broker{upstream: upstream, recorder: recorder, sessions: map[string]*sessionFacts{}}
	if opts != nil {
		b.opts = *opts
	}
	rules, err := Rules{b.opts.Policies, b.opts.Operator, b.opts.Limits}.withDefaults()
	if err != nil {
		return nil, err
	}
	b.rules.Store(rules)
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

// Limits returns the limits in force. Its map is not to be changed.
func (b *Broker) Limits() Limits { return b.rules.Load().Limits }

// View returns the snapshot as a caller sees it: what its profile leaves out does
// not exist for it. The error says that there is no such profile.
func (b *Broker) View(who caller.Caller, snapshot *catalog.Snapshot) (*catalog.Snapshot, error) {
	if who.Profile == "" {
		return snapshot, nil
	}
	profile, known := b.opts.Profiles[who.Profile]
	if !known {
		return nil, fmt.Errorf("there is no profile %q", who.Profile)
	}
	return snapshot.Within(profile), nil
}

// Open begins the calls of one run, against those tools of one snapshot that its
// caller sees. The caller closes them. nil options are usable; the error is
// ErrSessions, or says that the caller's profile is unknown.
func (b *Broker) Open(run Run, snapshot *catalog.Snapshot, opts *RunOptions) (*RunCalls, error) {
	snapshot, err := b.View(run.Caller, snapshot)
	if err != nil {
		return nil, fmt.Errorf("beginning run %q: %w", run.ID, err)
	}
	limits := b.Limits()
	s := &RunCalls{
		broker: b, identity: run, snapshot: snapshot, limits: limits,
		slots:    semaphore.NewWeighted(int64(limits.Concurrent)),
		searches: newLimiter(limits.CatalogRate),
		counts:   runCounts{state: approval.NotRequired},
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
	if s.opts.Admitted != nil {
		s.counts.state = s.opts.Admitted.Approval
	}
	if s.facts, err = b.openFacts(s); err != nil {
		return nil, fmt.Errorf("beginning run %q: %w", run.ID, err)
	}
	return s, nil
}
