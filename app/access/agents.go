package access

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
	"github.com/airlock-mcp/airlock/admission/clusterlimit"
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
	"github.com/airlock-mcp/airlock/kernel/iatp"
	"github.com/airlock-mcp/airlock/kernel/vfs"
)

// requireStateVariable is an environment variable that turns agents.requireState on, whatever the
// configuration has.
const requireStateVariable = "DOOM_LOOP_GUARD_REQUIRED"

// Agents are the registered agents and the tokens of callers over HTTP, with the
// audit log that the agents' activity is read from.
type Agents struct {
	*agents.Service
	tokens    *auth.Tokens
	authority *auth.Authority
	opts      Options
	undo      *cleanup.Stack
}

// Options are the options of New. All are required.
type Options struct {
	Config         func() *config.Config // the configuration in force
	Database       *database.DB
	State          *state.State // has the database
	Log            *audit.Log
	AuditDirectory string // of Log
	Logger         *slog.Logger
}

// New returns the agents and tokens of a database. The caller must close them before the options.
func New(opts Options) *Agents {
	a := &Agents{opts: opts, tokens: auth.NewTokens(opts.Database, nil), undo: &cleanup.Stack{}}
	c := opts.Config().Agents
	a.Service = agents.New(agents.Options{Database: opts.Database, Log: opts.Log, Budgets: map[string]budget.Limits{
		budget.Principal: c.PrincipalBudget, budget.Session: c.SessionBudget}})
	a.authority = auth.NewAuthority(auth.AuthorityOptions{Tokens: a.tokens, Agents: a.Service, Logger: opts.Logger,
		Profiles: func(name string) bool {
			_, err := opts.Config().Profile(name)
			return err == nil
		}})
	a.undo.Add(func() error { a.authority.Close(); return nil })
	return a
}

// With opens the agents and tokens of a configuration for a command that does not open a system. No person can be
// asked.
func With(ctx context.Context, c *config.Config, version string, use func(*Agents) error) error {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	return setup.Advise(state.WithLog(c, func(log *audit.Log) error {
		return state.With(c, version, func(s *state.State) error {
			db, err := s.Open(ctx)
			if err != nil {
				return err
			}
			a := New(Options{Config: func() *config.Config { return c }, Database: db, State: s, Log: log,
				AuditDirectory: directories.Audit, Logger: slog.New(slog.DiscardHandler)})
			return errors.Join(use(a), a.Close())
		})
	}))
}

// Watch registers the metrics of budgets and tokens, until the agents are closed.
func (a *Agents) Watch() error {
	unwatch, err := telemetry.WatchBudgets(a.Uses)
	if err != nil {
		return err
	}
	a.undo.Add(unwatch)
	if unwatch, err = telemetry.WatchTokens(a.tokens.Ends); err != nil {
		return err
	}
	a.undo.Add(unwatch)
	return nil
}

// OnClose has Close call stop.
func (a *Agents) OnClose(stop func()) { a.undo.Add(func() error { stop(); return nil }) }

// Admit lets the agents act, until they are closed. opts has Desk, Tools, Node and InForce; the rest is added.
func (a *Agents) Admit(ctx context.Context, by *admission.Service, opts admission.AgentOptions) error {
	c := a.opts.Config().Agents
	required, _ := strconv.ParseBool(os.Getenv(requireStateVariable)) // an invalid value counts as unset
	limiter, err := a.limiter(ctx, c, a.opts.Logger)
	if err != nil {
		return err
	}
	opts.Agents, opts.Database, opts.Limiter = a.Service, a.opts.Database, limiter
	if a.opts.Database.IsShared() {
		calls := clusterlimit.NewCalls(a.opts.Database, a.opts.Logger)
		a.undo.Add(calls.Close)
		opts.CallRates = calls
	}
	opts.Prices = admission.Prices{Actions: c.Prices, Default: c.DefaultPrice, Second: c.SecondPrice}
	opts.RequireState, opts.QuestionTime, opts.While = c.RequireState || required, c.QuestionTime, a.authority.While
	end, err := by.OpenAgents(opts)
	if err != nil {
		return err
	}
	a.undo.Add(func() error { end(); return nil })
	return by.Reconcile(ctx, func(ids []string) (map[string]bool, bool, error) {
		return agents.Debits(a.opts.AuditDirectory, ids)
	})
}

// limiter counts requests in Redis if it is configured and answers, otherwise in the database of the cluster, or in
// memory without one.
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
		logger.WarnContext(ctx, "Redis does not answer, so the requests of agents are counted without it", "error", err)
	}
	if a.opts.Database.IsShared() {
		requests := clusterlimit.NewRequests(a.opts.Database, admission.Rate(c.Rate))
		a.undo.Add(requests.Close)
		return requests, nil
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
	return a.opts.Log.Append(ctx, audit.Record{Kind: audit.KindOperator, Identity: audit.Identity{Principal: by},
		Detail: what})
}

// Activity is agents.Activity for the audit log of the configuration.
func (a *Agents) Activity(agentID string, period audit.Period, before uint64, n int) ([]agents.Entry, error) {
	return agents.Activity(a.opts.AuditDirectory, agentID, period, before, n)
}

// Close ends the open questions and closes what was opened. It may be called twice.
func (a *Agents) Close() error { return a.undo.Run() }

// Trust returns the trust service of agents: their keys, manifests and reputations. The caller must
// keep a open.
func (a *Agents) Trust() (*iatp.Service, error) {
	identity, err := a.opts.State.Identity()
	if err != nil {
		return nil, err
	}
	return iatp.New(iatp.Options{Database: a.opts.Database, Agents: a.Service, Log: a.opts.Log, Identity: identity})
}

// Files returns the files of agents, which are encrypted.
func (a *Agents) Files(limits vfs.Limits) (*vfs.Store, error) {
	identity, err := a.opts.State.Identity()
	if err != nil {
		return nil, err
	}
	return vfs.New(a.opts.Database, identity, limits, nil), nil
}
