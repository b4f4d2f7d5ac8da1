package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/admission/risk"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/policies"
)

// AgentOptions are the options of OpenAgents. Agents and Database are required.
type AgentOptions struct {
	Agents   *agents.Service
	Database *database.DB // of the agents
	// Node is this process in a cluster; nil means that no other node uses the database.
	Node *cluster.Node
	// Rules decide what agents may do without approval; nil means policies.Agents.
	Rules *policies.Engine
	// Desk is used to ask people. If it is nil, no person can be asked.
	Desk approval.Reserver
	// Tools returns the configured tools that match the type of an announced action: the ID of a
	// tool, or its name on any server. It must be safe for concurrent use. nil means that no tool
	// is configured.
	Tools func(name string) []risk.Declared
	// Prices are what actions cost.
	Prices Prices
	// Limiter limits the request rate of agents; nil means that only budgets limit it.
	Limiter Limiter
	// CallRates counts the calls of all callers, agents or not. If it is nil, they are counted in memory.
	CallRates CallRates
	// RequireState requires the hash of the state before each action.
	RequireState bool
	// QuestionTime is how long a person has to answer, and how long an approved action can be
	// retried; 0 means 10 minutes.
	QuestionTime time.Duration
	// While returns a context that is cancelled when an agent may no longer act. If While is nil,
	// the context is never cancelled.
	While func(ctx context.Context, who caller.Caller) (context.Context, func())
	// InForce reports whether a person who approved with a credential may still approve. If it is nil, nobody with a
	// credential may.
	InForce func(approver caller.Caller) bool
}

// agentGate decides about the acts of agents.
type agentGate struct {
	opts   AgentOptions
	log    Log
	logger *slog.Logger
	now    func() time.Time
	ledger *budget.Ledger

	asking     sync.WaitGroup
	assessing  *quota.Limiter
	assessed   *quota.Limiter // of the time that assessments took
	unrecorded rateRefusals
	records    keptRecords
	process    string // see thisProcess

	mu     sync.Mutex               // guards the fields below
	closed bool                     // no new questions are opened
	open   map[string]int           // number of open questions by agent
	live   map[string]*liveQuestion // the open questions by ID
}

// defaultQuestionTime is the default of AgentOptions.QuestionTime.
const defaultQuestionTime = 10 * time.Minute

// OpenAgents lets agents act until end is called, which closes their open questions and waits until
// the ends are recorded. It is safe to call end more than once.
func (s *Service) OpenAgents(opts AgentOptions) (end func(), err error) {
	if opts.Rules == nil {
		if opts.Rules, err = policies.Load(policies.Agents()); err != nil {
			return nil, fmt.Errorf("loading the rules about agents: %w", err)
		}
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
	g := &agentGate{opts: opts, log: s.opts.Log, logger: s.opts.Logger, now: s.opts.Now, ledger: opts.Agents.Ledger(),
		process: thisProcess(opts.Node.Name()), assessing: quota.New(quota.For(quota.Assessments)),
		assessed: quota.New(quota.For(quota.AssessedTime)), open: map[string]int{},
		live: map[string]*liveQuestion{}}
	s.agents.Store(g)
	return func() {
		s.agents.CompareAndSwap(g, nil)
		g.close()
	}, nil
}

// smallInput is the maximum size of a request that is read and assessed without waiting for a turn.
const smallInput = 16 << 10

// awaitTurn waits for the turn of the agent's account with a request of a size. Each account has one
// large request assessed at a time, and a share of a processor for all of them, so that no account
// can use all processors with hostile input. The caller must call done after the assessment. The
// error is that of ctx.
func (e *evaluation) awaitTurn(ctx context.Context, size int) (done func(), err error) {
	if size <= smallInput {
		return func() {}, ctx.Err()
	}
	account := e.agent.Caller().Account()
	turn, err := e.assessing.Wait(ctx, account)
	if err != nil {
		return nil, err
	}
	if err := e.assessed.AwaitRate(ctx, account); err != nil {
		turn.Release()
		return nil, err
	}
	began := time.Now()
	return func() {
		e.assessed.Charge(account, time.Since(began).Milliseconds())
		turn.Release()
	}, nil
}

// close ends the open questions and waits until their ends are recorded.
func (g *agentGate) close() {
	g.mu.Lock()
	g.closed = true
	for _, q := range g.live {
		if q.end != nil {
			q.end()
		}
	}
	g.mu.Unlock()
	g.asking.Wait()
	g.closeRefusals()
	g.closeRecords()
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
	// refuses the request. One that wraps ErrState ends the decision like an error of the database.
	Allow(ctx context.Context, key string) error
}

// ErrState is wrapped by the error of a Limiter that counts in the database of the state, if it cannot be used.
var ErrState = errors.New("the state cannot be used")

// ErrTooOften is returned if a caller exceeds the request rate.
var ErrTooOften = errors.New("too many requests")
