package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/admission/redislimit"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/telemetry"
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
	state          *state.State
	log            *audit.Log
	auditDirectory string
	undo           *cleanup.Stack
}

// OpenAgents opens the agent service for a command. It has no approval desk, so questions are not
// answered. The caller must close it.
func OpenAgents(ctx context.Context, c *config.Config, opts Options) (_ *Agents, err error) {
	opts = opts.withDefaults()
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return nil, err
	}
	a := &Agents{auditDirectory: directories.Audit, undo: &cleanup.Stack{},
		state: state.New(directories, c, state.Options{Version: opts.Version, Logger: opts.Logger})}
	defer func() {
		if err != nil {
			err = errors.Join(setup.Advise(err), a.Close())
		}
	}()
	log, err := audit.Open(directories.Audit, state.AuditOptions(directories, c.Audit))
	if err != nil {
		return nil, err
	}
	a.log = log
	a.undo.Add(log.Close)
	a.undo.Add(a.state.Close)
	db, err := a.state.Open(ctx)
	if err != nil {
		return a, err
	}
	a.open(func() *config.Config { return c }, db, opts.Logger)
	return a, nil
}

// OpenAgents opens the agent service with the audit log and the approval desk of the system.
// Until then the system denies every act of an agent. The caller must close it before the system.
func (s *System) OpenAgents(ctx context.Context) (*Agents, error) {
	a := &Agents{auditDirectory: s.directories.Audit, state: s.state, log: s.log, undo: &cleanup.Stack{}}
	db, err := s.state.Open(ctx)
	if err == nil {
		a.open(s.Config, db, s.opts.Logger)
		err = a.admit(ctx, s)
	}
	if err != nil {
		return nil, errors.Join(setup.Advise(err), a.Close())
	}
	unwatch, err := telemetry.WatchBudgets(a.Uses)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.undo.Add(unwatch)
	if unwatch, err = telemetry.WatchTokens(a.tokens.Ends); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.undo.Add(unwatch)
	if node := s.state.Node(); node != nil {
		s.authority.node.Store(node)
		stop := s.desk.Share(ctx, db, node.ID())
		a.undo.Add(func() error { stop(); return nil })
		stopCopies, err := s.startCopies(ctx, db)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.undo.Add(func() error { stopCopies(); return nil })
		if s.suspended != nil {
			stopAdopting := s.adoptRuns(ctx)
			a.undo.Add(func() error { stopAdopting(); return nil })
		}
	}
	s.authority.open(a.authority)
	a.undo.Add(func() error { s.authority.known.Store(nil); return nil })
	return a, nil
}

// open opens the registry and the authority. inForce returns the current configuration.
func (a *Agents) open(inForce func() *config.Config, db *database.DB, logger *slog.Logger) {
	a.database = db
	a.tokens = auth.NewTokens(db, nil)
	c := inForce().Agents
	a.Service = agents.New(agents.Options{Database: db, Log: a.log, Budgets: map[string]budget.Limits{
		budget.Principal: c.PrincipalBudget, budget.Session: c.SessionBudget}})
	a.authority = auth.NewAuthority(auth.AuthorityOptions{Tokens: a.tokens, Agents: a.Service, Logger: logger,
		Profiles: func(name string) bool {
			_, err := inForce().Profile(name)
			return err == nil
		}})
	a.undo.Add(func() error { a.authority.Close(); return nil })
}

// admit lets the agents act.
func (a *Agents) admit(ctx context.Context, s *System) error {
	c := s.Config().Agents
	required, _ := strconv.ParseBool(os.Getenv(requireStateVariable)) // an invalid value counts as unset
	limiter, err := a.limiter(ctx, c, s.opts.Logger)
	if err != nil {
		return err
	}
	end, err := s.admission.OpenAgents(admission.AgentOptions{
		Agents: a.Service, Database: a.database, Desk: s.desk, Tools: s.Declared, Limiter: limiter,
		Prices:       admission.Prices{Actions: c.Prices, Default: c.DefaultPrice, Second: c.SecondPrice},
		Node:         s.state.Node(),
		RequireState: c.RequireState || required, QuestionTime: c.QuestionTime, While: a.authority.While,
		InForce: s.mayApprove,
	})
	if err != nil {
		return err
	}
	a.undo.Add(func() error { end(); return nil })
	return s.admission.Reconcile(ctx, func(ids []string) (map[string]bool, bool, error) {
		return agents.Debits(a.auditDirectory, ids)
	})
}

// limiter counts requests in Redis if it is configured and answers, otherwise in memory.
func (a *Agents) limiter(ctx context.Context, c config.Agents, logger *slog.Logger) (admission.Limiter, error) {
	if c.Redis.Reveal() != "" {
		shared, err := redislimit.Open(ctx, c.Redis.Reveal(), c.Rate.Calls, c.Rate.Per)
		switch {
		case err == nil:
			a.undo.Add(shared.Close)
			return shared, nil
		case errors.Is(err, redislimit.ErrAddress):
			return nil, &setup.Error{Err: fmt.Errorf("agents.redis: %w", err),
				Advice: "write agents.redis: redis://127.0.0.1:6379/0"}
		}
		logger.WarnContext(ctx, "Redis does not answer, so the requests of agents are counted in this process alone",
			"error", err)
	}
	return admission.NewWindow(c.Rate.Calls, c.Rate.Per, nil), nil
}

// Tokens returns the tokens of callers over HTTP.
func (a *Agents) Tokens() *auth.Tokens { return a.tokens }

// Authority returns the authority, which decides which callers may still act.
func (a *Agents) Authority() *auth.Authority { return a.authority }

// RevokeToken makes a token invalid, and kills the agents that it registered.
func (a *Agents) RevokeToken(ctx context.Context, id, by string) error {
	if err := a.tokens.Revoke(ctx, id); err != nil {
		return err
	}
	a.authority.Changed()
	return errors.Join(a.Record(ctx, by, "token revoked: "+id), a.EndOf(ctx, id, by))
}

// SignOut ends the sign-ins and access tokens of a person of the issuer, see auth.Tokens.SignOutSubject.
func (a *Agents) SignOut(ctx context.Context, name, by string) error {
	if err := a.tokens.SignOutSubject(ctx, name); err != nil {
		return err
	}
	a.authority.Changed()
	return a.Record(ctx, by, "signed out: "+name)
}

// SetStatus suspends, resumes or kills an agent. Its running acts end at once.
func (a *Agents) SetStatus(ctx context.Context, id string, status agents.Status, by string) error {
	defer a.authority.Changed()
	return a.Service.SetStatus(ctx, id, status, by)
}

// CreateToken issues a token and returns its value, of which only the hash is stored. It is recorded
// before.
func (a *Agents) CreateToken(ctx context.Context, grant auth.Grant, by string) (auth.Token, secret.Value, error) {
	whom := cmp.Or(grant.Principal, "a new principal")
	if err := a.Record(ctx, by, "token made for "+whom+" with "+strings.Join(grant.Scopes, " ")); err != nil {
		return auth.Token{}, secret.Value{}, err
	}
	return a.tokens.Create(ctx, grant)
}

// Record writes an action of an operator to the audit log.
func (a *Agents) Record(ctx context.Context, by, what string) error {
	return a.log.Append(ctx, audit.Record{Kind: audit.KindOperator, Identity: audit.Identity{Principal: by},
		Detail: what})
}

// Activity is agents.Activity for the audit log of the configuration.
func (a *Agents) Activity(agentID string, period audit.Period, before uint64, n int) ([]agents.Entry, error) {
	return agents.Activity(a.auditDirectory, agentID, period, before, n)
}

// Close ends the open questions and closes what was opened. It may be called twice.
func (a *Agents) Close() error { return a.undo.Run() }
