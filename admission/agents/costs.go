package agents

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Agents is the kind of the accounts of agents, beside budget.Principal and budget.Session.
const Agents = "agent"

const agentAccount = Agents + ":"

// Accounts selects accounts of the ledger. The zero value selects all.
type Accounts struct {
	Kind      string // "agent", "principal" or "session"
	Agent     string // an agent and its sessions
	Principal string // a principal and its agents
}

// Standing is an account with its agent.
type Standing struct {
	budget.Standing
	Name        string `json:"name,omitempty"`         // of the agent
	PrincipalID string `json:"principal_id,omitempty"` // that the agent acts for
}

// Standings returns at most n selected accounts, ordered by name and starting after the name after.
// These are the accounts that have a limit or were debited today.
func (s *Service) Standings(ctx context.Context, only Accounts, after string, n int) ([]Standing, error) {
	var list []Standing
	err := s.opts.Database.View(ctx, func(tx database.Tx) error {
		list = []Standing{}
		found, err := s.standings(ctx, tx, only, after, n)
		if err != nil {
			return err
		}
		ids := []string{}
		for _, one := range found {
			list = append(list, Standing{Standing: one})
			ids = append(ids, agentOfAccount(one.Account))
		}
		return eachName(ctx, tx, ids, func(i int, name, principal string) {
			list[i].Name, list[i].PrincipalID = name, principal
		})
	})
	return list, err
}

func (s *Service) standings(ctx context.Context, tx database.Tx, only Accounts, after string, n int) ([]budget.Standing,
	error) {
	switch {
	case only.Agent != "":
		own := agentAccount + only.Agent
		sessions, err := s.ledger.List(ctx, tx, budget.Session+":"+only.Agent+"/", after, n)
		if err != nil || after >= own {
			return sessions, err
		}
		list, err := s.ledger.Of(ctx, tx, []string{own})
		return append(list, sessions...)[:min(n, len(list)+len(sessions))], err
	case only.Principal != "":
		return s.ofPrincipal(ctx, tx, only.Principal, after, n)
	case only.Kind != "":
		return s.ledger.List(ctx, tx, only.Kind+":", after, n)
	}
	return s.ledger.List(ctx, tx, "", after, n)
}

func (s *Service) ofPrincipal(ctx context.Context, tx database.Tx, principal, after string, n int) ([]budget.Standing,
	error) {
	accounts, err := accountsOf(ctx, tx, principal, after, n)
	if err != nil {
		return nil, err
	}
	return s.ledger.Of(ctx, tx, accounts)
}

// accountsOf returns at most n accounts of a principal and of its agents, ordered by name and
// starting after the name after.
func accountsOf(ctx context.Context, tx database.Tx, principal, after string, n int) ([]string, error) {
	accounts := []string{}
	var id string
	err := database.ScanRows(ctx, tx, `SELECT id FROM agent WHERE principal = ? AND id > ? ORDER BY id LIMIT ?`,
		[]any{principal, strings.TrimPrefix(after, agentAccount), n}, []any{&id}, func() error {
			accounts = append(accounts, agentAccount+id)
			return nil
		})
	if of := budget.Principal + ":" + principal; len(accounts) < n && after < of {
		accounts = append(accounts, of)
	}
	return accounts, err
}

// agentOfAccount returns the ID of the agent that an account or the session of an account belongs
// to, or an empty string.
func agentOfAccount(account string) string {
	kind, of, _ := strings.Cut(account, ":")
	switch kind {
	case Agents:
		return of
	case budget.Session:
		id, _, _ := strings.Cut(of, "/")
		return id
	}
	return ""
}

// eachName calls visit with the index, the name and the principal of each ID that is an agent's.
func eachName(ctx context.Context, tx database.Tx, ids []string, visit func(i int, name, principal string)) error {
	raw, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	var i int
	var name, principal string
	return database.ScanRows(
		ctx, tx, `SELECT j.key, a.name, a.principal FROM json_each(?) j JOIN agent a ON a.id = j.value`,
		[]any{string(raw)}, []any{&i, &name, &principal}, func() error {
			visit(i, name, principal)
			return nil
		})
}

// Cost is what an account spent on one day, with its agent.
type Cost struct {
	budget.Cost
	Name string `json:"name,omitempty"` // of the agent
}

// Costs returns the costs of accounts on each day from first up to and including last, ordered by
// day and account. only.Kind is "principal" or "agent". Days without requests are left out; the
// ledger keeps 400 days of each account.
func (s *Service) Costs(ctx context.Context, only Accounts, first, last time.Time) ([]Cost, error) {
	var costs []Cost
	err := s.opts.Database.View(ctx, func(tx database.Tx) (err error) {
		costs = []Cost{}
		var accounts []string // nil for all
		if only.Principal != "" {
			if accounts, err = accountsOf(ctx, tx, only.Principal, "", math.MaxInt); err != nil {
				return err
			}
		}
		found, err := s.ledger.Costs(ctx, tx, only.Kind+":", accounts, first, last)
		if err != nil {
			return err
		}
		ids := []string{}
		for _, one := range found {
			costs, ids = append(costs, Cost{Cost: one}), append(ids, agentOfAccount(one.Account))
		}
		return eachName(ctx, tx, ids, func(i int, name, _ string) { costs[i].Name = name })
	})
	return costs, err
}

// maxUses is the maximum number of accounts whose use of their limits is measured.
const maxUses = 1000

// Uses returns the used parts of the limits of the agents and principals that spent most today.
func (s *Service) Uses(ctx context.Context) ([]telemetry.Use, error) {
	var uses []telemetry.Use
	err := s.opts.Database.View(ctx, func(tx database.Tx) error {
		uses = nil
		standings, err := s.ledger.Busiest(ctx, tx, budget.Session+":", maxUses)
		for _, one := range standings {
			for limit, part := range one.Used() {
				uses = append(uses, telemetry.Use{Account: one.Account, Limit: limit, Part: part})
			}
		}
		return err
	})
	return uses, err
}
