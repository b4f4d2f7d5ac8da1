package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/policies"
)

// Schema creates the tables of agents and of their budgets, as the first version of a database.
const Schema = budget.Schema + `
CREATE TABLE agent (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	type        TEXT NOT NULL,
	principal   TEXT NOT NULL,
	owner       TEXT NOT NULL, -- who registered it
	permissions TEXT NOT NULL, -- JSON of Permissions
	status      TEXT NOT NULL,
	token_hash  BLOB NOT NULL UNIQUE, -- SHA-256
	created     INTEGER NOT NULL, -- seconds since 1970
	rotated     INTEGER NOT NULL
) STRICT;
CREATE INDEX agent_owner ON agent (owner, id);
CREATE TABLE conversation (
	agent TEXT NOT NULL REFERENCES agent (id),
	id    TEXT NOT NULL,
	state TEXT NOT NULL, -- JSON of conversationState
	PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE question (
	agent        TEXT NOT NULL REFERENCES agent (id),
	conversation TEXT NOT NULL,
	step         INTEGER NOT NULL,
	subject      TEXT NOT NULL, -- digest of everything that the answer is bound to
	id           TEXT NOT NULL,
	state        TEXT NOT NULL, -- open, approved, refused
	approver     TEXT NOT NULL,
	expires      INTEGER NOT NULL,
	PRIMARY KEY (agent, conversation, step, subject)
) STRICT, WITHOUT ROWID;`

// SchemaInherited adds the limits inherited from the caller that registered an agent.
const SchemaInherited = `
ALTER TABLE agent ADD COLUMN inherited TEXT NOT NULL DEFAULT '{}'; -- JSON of storedInherited
ALTER TABLE agent ADD COLUMN expires INTEGER NOT NULL DEFAULT 0;   -- seconds since 1970; 0: never`

// Log records every attempt. It is an audit.Log.
type Log interface {
	Append(ctx context.Context, r audit.Record) error
	Note(ctx context.Context, r audit.Record) error
	Hash(b []byte) string
}

// Options of a service. Database and Log are required.
type Options struct {
	Database *database.DB // with the tables of Schema
	Log      Log
	// Rules decide what agents may do without approval; nil means policies.Agents.
	Rules *policies.Engine
	// Desk is used to ask people. If it is nil, no person can be asked.
	Desk approval.Reserver
	// Tools returns the configured tools that match the type of an announced action: the ID of a
	// tool, or its name on any server. It must be safe for concurrent use. nil means that no tool
	// is configured.
	Tools func(name string) []admission.Declared
	// Prices are what actions cost.
	Prices Prices
	// Budgets are the limits of each principal over all its agents, and of each session of an
	// agent, keyed by budget.Principal and budget.Session. A missing entry means no limit.
	Budgets map[string]budget.Limits
	// Limiter limits the request rate of agents; nil means that only budgets limit it.
	Limiter Limiter
	// RequireState requires the hash of the state before each action.
	RequireState bool
	// QuestionTime is how long a person has to answer, and how long an approved action can be
	// retried; 0 means 10 minutes.
	QuestionTime time.Duration
	// While returns a context that is cancelled when an agent may no longer act. If While is nil,
	// the context is never cancelled.
	While  func(ctx context.Context, who caller.Caller) (context.Context, func())
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Prices are the prices of an agent's actions. The zero value makes them free.
type Prices struct {
	Actions map[string]budget.Amount // by action type or tool
	Default budget.Amount            // of all others
	Second  budget.Amount            // of a run's sandbox, beside the price of the run
}

// of returns the price of an action, by the first of its names that has one.
func (p Prices) of(names ...string) budget.Amount {
	for _, name := range names {
		if price, listed := p.Actions[name]; listed {
			return price
		}
	}
	return p.Default
}

// Limiter limits the request rate of a principal.
type Limiter interface {
	// Allow returns nil, ErrTooOften, or another error if it cannot count the request. Any error
	// refuses the request.
	Allow(ctx context.Context, key string) error
}

// ErrTooOften is returned if a caller exceeds the request rate.
var ErrTooOften = errors.New("too many requests")

// Service registers agents and decides about their actions. Its methods, except Close, are safe for
// concurrent use.
type Service struct {
	opts   Options
	ledger *budget.Ledger

	asking     sync.WaitGroup
	assessing  turns
	remembered recentAgents

	mu     sync.Mutex                    // guards the fields below
	closed bool                          // no new questions are opened
	open   map[string]int                // number of open questions by agent
	live   map[string]context.CancelFunc // cancel functions of the open questions by ID; nil before asking starts
}

// defaultQuestionTime is the default of Options.QuestionTime.
const defaultQuestionTime = 10 * time.Minute

// New returns a service.
func New(opts Options) (*Service, error) {
	if opts.Rules == nil {
		rules, err := policies.Load(policies.Agents())
		if err != nil {
			return nil, fmt.Errorf("loading the rules about agents: %w", err)
		}
		opts.Rules = rules
	}
	if opts.Desk == nil {
		opts.Desk = approval.None{}
	}
	if opts.QuestionTime <= 0 {
		opts.QuestionTime = defaultQuestionTime
	}
	if opts.While == nil {
		opts.While = func(ctx context.Context, _ caller.Caller) (context.Context, func()) { return ctx, func() {} }
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Service{opts: opts, ledger: budget.New(opts.Now, opts.Budgets), open: map[string]int{}, live: map[string]context.CancelFunc{}}, nil
}

// Close ends the open questions and waits until their ends are recorded. It is safe to call Close
// more than once.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	for _, end := range s.live {
		if end != nil {
			end()
		}
	}
	s.mu.Unlock()
	s.asking.Wait()
}
