package system

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/agents/redislimit"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database"
)

// requireStateVariable is an environment variable that turns agents.requireState on, whatever the
// configuration has.
const requireStateVariable = "DOOM_LOOP_GUARD_REQUIRED"

// Agents are the registered agents and the tokens of callers over HTTP, with the
// audit log that the agents' activity is read from.
type Agents struct {
	*agents.Service
	tokens         *auth.Tokens
	authority      *auth.Authority
	database       *database.DB
	keys           string // the directory of key files
	log            *audit.Log
	auditDirectory string
	undo           *cleanup.Stack
}

// OpenAgents opens the agent service for a command. It has no approval desk, so questions are not
// answered. The caller must close it.
func OpenAgents(ctx context.Context, c *config.Config, opts Options) (_ *Agents, err error) {
	opts = opts.withDefaults()
	directories, err := FindDirectories(c)
	if err != nil {
		return nil, err
	}
	a := &Agents{auditDirectory: directories.Audit, keys: directories.Keys, undo: &cleanup.Stack{}}
	defer func() {
		if err != nil {
			err = errors.Join(Advise(err), a.Close())
		}
	}()
	log, err := audit.Open(directories.Audit, auditOptions(directories, c.Audit))
	if err != nil {
		return nil, err
	}
	a.log = log
	a.undo.Add(log.Close)
	return a, a.open(ctx, c, directories.Home, agents.Options{Log: log, Logger: opts.Logger})
}

// OpenAgents opens the agent service with the audit log and the approval desk of the system.
// Until then the system denies every act of an agent. The caller must close it before the system.
func (s *System) OpenAgents(ctx context.Context) (*Agents, error) {
	a := &Agents{auditDirectory: s.directories.Audit, keys: s.directories.Keys, log: s.log, undo: &cleanup.Stack{}}
	err := a.open(ctx, s.config, s.directories.Home, agents.Options{Log: s.log, Desk: s.desk, Logger: s.opts.Logger, Tools: s.declared})
	if err != nil {
		return nil, errors.Join(Advise(err), a.Close())
	}
	s.acting.known.Store(a.Service)
	s.authority.known.Store(a.authority)
	a.undo.Add(func() error {
		s.acting.known.Store(nil)
		s.authority.known.Store(nil)
		return nil
	})
	return a, nil
}

// open opens the database and starts the service.
func (a *Agents) open(ctx context.Context, c *config.Config, home string, opts agents.Options) error {
	db, err := database.Open(ctx, filepath.Join(home, "state.db"), agents.Schema, auth.Schema, kernelSchema, agents.SchemaInherited)
	if err != nil {
		return err
	}
	a.undo.Add(db.Close)
	a.database = db
	a.tokens = auth.NewTokens(db, nil)
	opts.Database = db
	opts.While = func(ctx context.Context, who caller.Caller) (context.Context, func()) {
		return a.authority.While(ctx, who)
	}
	if err := a.begin(ctx, c.Agents, opts); err != nil {
		return err
	}
	a.authority = auth.NewAuthority(auth.AuthorityOptions{Tokens: a.tokens, Agents: a.Service, Logger: opts.Logger, Profiles: func(name string) bool {
		_, err := c.Profile(name)
		return err == nil
	}})
	a.undo.Add(func() error { a.authority.Close(); return nil })
	return nil
}

func (a *Agents) begin(ctx context.Context, c config.Agents, opts agents.Options) (err error) {
	required, _ := strconv.ParseBool(os.Getenv(requireStateVariable)) // an invalid value counts as unset
	opts.RequireState = c.RequireState || required
	opts.QuestionTime = c.QuestionTime
	opts.Budgets = map[string]budget.Limits{budget.Principal: c.PrincipalBudget, budget.Session: c.SessionBudget}
	opts.Prices = agents.Prices{Actions: c.Prices, Default: c.DefaultPrice, Second: c.SecondPrice}
	if opts.Limiter, err = a.limiter(ctx, c, opts.Logger); err != nil {
		return err
	}
	if a.Service, err = agents.New(opts); err != nil {
		return err
	}
	a.undo.Add(func() error { a.Service.Close(); return nil })
	return nil
}

// limiter counts requests in Redis if it is configured and answers, otherwise in memory.
func (a *Agents) limiter(ctx context.Context, c config.Agents, logger *slog.Logger) (agents.Limiter, error) {
	if c.Redis.Reveal() != "" {
		shared, err := redislimit.Open(ctx, c.Redis.Reveal(), c.Rate.Calls, c.Rate.Per)
		switch {
		case err == nil:
			a.undo.Add(shared.Close)
			return shared, nil
		case errors.Is(err, redislimit.ErrAddress):
			return nil, &SetupError{fmt.Errorf("agents.redis: %w", err), "write agents.redis: redis://127.0.0.1:6379/0"}
		}
		logger.WarnContext(ctx, "Redis does not answer, so the requests of agents are counted in this process alone", "error", err)
	}
	return agents.NewWindow(c.Rate.Calls, c.Rate.Per, nil), nil
}

// Tokens returns the tokens of callers over HTTP.
func (a *Agents) Tokens() *auth.Tokens { return a.tokens }

// Authority returns the authority, which decides which callers may still act.
func (a *Agents) Authority() *auth.Authority { return a.authority }

// RevokeToken makes a token invalid, and kills the agents that it registered.
func (a *Agents) RevokeToken(ctx context.Context, id string) error {
	if err := a.tokens.Revoke(ctx, id); err != nil {
		return err
	}
	a.authority.Changed()
	return errors.Join(a.Record(ctx, "token revoked: "+id), a.EndOf(ctx, id, Principal()))
}

// SetStatus suspends, resumes or kills an agent. Its running acts end at once.
func (a *Agents) SetStatus(ctx context.Context, id string, status agents.Status, by string) error {
	defer a.authority.Changed()
	return a.Service.SetStatus(ctx, id, status, by)
}

// Record writes an action of the operator to the audit log.
func (a *Agents) Record(ctx context.Context, what string) error {
	return a.log.Append(ctx, audit.Record{Kind: audit.KindOperator, Identity: audit.Identity{Principal: Principal()}, Detail: what})
}

// Activity returns the newest n attempts of an agent, the newest first.
func (a *Agents) Activity(agentID string, n int) ([]agents.Entry, error) {
	return agents.Activity(a.auditDirectory, agentID, n)
}

// Close ends the open questions and closes what was opened. It may be called twice.
func (a *Agents) Close() error { return a.undo.Run() }
