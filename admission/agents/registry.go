package agents

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// ErrUnknown is returned if the agent does not exist.
var ErrUnknown = errors.New("there is no such agent")

// ErrToken is returned if a token does not belong to an agent that may act.
var ErrToken = errors.New("the agent's token is not valid")

// Register adds an agent and returns it with its token. The token cannot be retrieved later,
// because only its hash is stored. by is the caller who registers and owns the agent.
func (s *Service) Register(ctx context.Context, r Registration, by string) (Agent, secret.Value, error) {
	if err := r.Check(); err != nil {
		return Agent{}, secret.Value{}, err
	}
	r = r.withDefaults()
	token := newToken()
	now := s.opts.Now().UTC().Truncate(time.Second)
	a := Agent{
		ID: newID(), Name: r.Name, Type: r.Type, Trust: r.Type.Trust(), PrincipalID: r.PrincipalID, Owner: by,
		Permissions: r.Permissions, Status: Active, Created: now, Rotated: now, Inherited: r.Inherited,
		TokenMark: markOf(hashToken(token)),
	}
	permissions, err := json.Marshal(a.Permissions)
	if err != nil {
		return Agent{}, secret.Value{}, err
	}
	inherited, err := json.Marshal(storedInherited{a.Profile, a.Scopes, a.Credentials, a.Facts})
	if err != nil {
		return Agent{}, secret.Value{}, err
	}
	if err := s.record(ctx, by, a.ID, registered+string(a.Type)); err != nil {
		return Agent{}, secret.Value{}, err
	}
	err = s.opts.Database.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO agent VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, a.ID, a.Name,
			a.Type,
			a.PrincipalID, a.Owner, string(permissions), a.Status, hashToken(token), now.Unix(), now.Unix(),
			string(inherited), seconds(a.Expires)); err != nil {
			return fmt.Errorf("registering agent %q: %w", a.Name, err)
		}
		return s.ledger.SetLimits(ctx, tx, a.LedgerAccount(), r.Budget)
	})
	return a, token, err
}

// Rotate gives an agent a new token and invalidates the old one. with are the credentials of the
// caller who gets the token; from then on they must be valid for the agent to act.
func (s *Service) Rotate(ctx context.Context, id, by string, with []caller.Credential) (secret.Value, error) {
	token := newToken()
	return token, s.change(ctx, id, by, func(tx database.Tx, a Agent) (string, error) {
		expires := a.Expires
		for _, one := range with {
			if slices.ContainsFunc(a.Credentials, func(has caller.Credential) bool { return has.ID == one.ID }) {
				continue
			}
			a.Credentials = append(a.Credentials, one)
			if !one.Expires.IsZero() && (expires.IsZero() || one.Expires.Before(expires)) {
				expires = one.Expires
			}
		}
		inherited, err := json.Marshal(storedInherited{a.Profile, a.Scopes, a.Credentials, a.Facts})
		if err != nil {
			return "", err
		}
		_, err = tx.ExecContext(
			ctx, `UPDATE agent SET token_hash = ?, rotated = ?, inherited = ?, expires = ? WHERE id = ?`,
			hashToken(token), s.opts.Now().Unix(), string(inherited), seconds(expires), id)
		return "agent token rotated", err
	})
}

// agentsOf selects the agents of a credential that are not killed.
const agentsOf = `SELECT agent.id FROM agent_credential CROSS JOIN agent
	WHERE agent_credential.credential = ? AND agent.id = agent_credential.agent AND status <> 'killed'`

// EndOf kills the agents that were registered with a revoked credential.
func (s *Service) EndOf(ctx context.Context, credential, by string) error {
	ids, err := database.Rows(ctx, s.opts.Database, agentsOf, []any{credential}, database.Column[string])
	for _, id := range ids {
		err = errors.Join(err, s.SetStatus(ctx, id, Killed, by))
	}
	return err
}

// storedInherited is the stored form of Inherited.
type storedInherited struct {
	Profile     string              `json:"profile,omitempty"`
	Scopes      []string            `json:"scopes,omitempty"`
	Credentials []caller.Credential `json:"credentials,omitempty"`
	Facts       caller.Facts        `json:"facts,omitzero"`
}

// seconds returns the stored form of a time; 0 for the zero time.
func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}

// SetStatus suspends, resumes or kills an agent. It returns ErrKilled if a killed agent is to be resumed.
func (s *Service) SetStatus(ctx context.Context, id string, status Status, by string) error {
	switch status {
	case Active, Suspended, Killed:
	default:
		return fmt.Errorf("status %q is not one of active, suspended and killed", status)
	}
	return s.change(ctx, id, by, func(tx database.Tx, a Agent) (string, error) {
		if a.Status == Killed && status != Killed {
			return "", ErrKilled
		}
		_, err := tx.ExecContext(ctx, `UPDATE agent SET status = ? WHERE id = ?`, status, id)
		return "agent is " + string(status), err
	})
}

// change calls do with the agent in a transaction, and records what do returns before the
// transaction is committed, so that no change happens without a record. If do returns an error, the
// transaction is undone and nothing is recorded. If the database refuses the commit, the change is
// tried again, and has another record if it is another change.
func (s *Service) change(ctx context.Context, id, by string,
	do func(database.Tx, Agent) (what string, err error)) error {
	recorded := ""
	return s.opts.Database.Update(ctx, func(tx database.Tx) error {
		a, err := s.find(ctx, tx, id)
		if err != nil {
			return err
		}
		what, err := do(tx, a)
		if err != nil || what == recorded {
			return err
		}
		recorded = what
		return s.record(ctx, by, id, what)
	})
}

func (s *Service) record(ctx context.Context, by, agent, what string) error {
	return s.opts.Log.Append(ctx, audit.Record{
		Kind: audit.KindOperator, Identity: audit.Identity{Principal: by}, Detail: what + ": " + agent,
	})
}

// agentColumns are the columns read by scanAgent.
const agentColumns = `id, name, type, principal, owner, permissions, status, created, rotated, token_hash, inherited,
	expires`

// scanAgent reads an agent. The status of an expired agent is killed.
func (s *Service) scanAgent(row interface{ Scan(...any) error }) (Agent, error) {
	var a Agent
	var permissions, inherited string
	var created, rotated, expires int64
	var hash []byte
	err := row.Scan(&a.ID, &a.Name, &a.Type, &a.PrincipalID, &a.Owner, &permissions, &a.Status, &created, &rotated,
		&hash, &inherited, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		return a, ErrUnknown
	}
	if err == nil {
		err = strictjson.UnmarshalOpen([]byte(permissions), &a.Permissions)
	}
	var stored storedInherited
	if err == nil {
		err = strictjson.UnmarshalOpen([]byte(inherited), &stored)
	}
	a.Profile, a.Scopes, a.Credentials, a.Facts = stored.Profile, stored.Scopes, stored.Credentials, stored.Facts
	a.TokenMark = markOf(hash)
	if expires != 0 {
		a.Expires = time.Unix(expires, 0).UTC()
	}
	if s.expired(a) {
		a.Status = Killed
	}
	a.Trust = a.Type.Trust()
	a.Created, a.Rotated = time.Unix(created, 0).UTC(), time.Unix(rotated, 0).UTC()
	a.reading = new(byte)
	return a, err
}

// expired reports whether the agent has expired.
func (s *Service) expired(a Agent) bool {
	return !a.Expires.IsZero() && !s.opts.Now().Before(a.Expires)
}

func (s *Service) find(ctx context.Context, tx database.Tx, id string) (Agent, error) {
	return s.scanAgent(tx.QueryRowContext(ctx, `SELECT `+agentColumns+` FROM agent WHERE id = ?`, id))
}

// Find returns an agent, or ErrUnknown.
func (s *Service) Find(ctx context.Context, id string) (a Agent, err error) {
	err = s.opts.Database.Query(ctx, func(tx database.Tx) error {
		a, err = s.find(ctx, tx, id)
		return err
	})
	return a, err
}

// Authenticate returns the agent that a token belongs to, or ErrToken. It accepts the token of a
// suspended agent, which then gets a specific error, but not that of a killed one.
func (s *Service) Authenticate(ctx context.Context, token secret.Value) (Agent, error) {
	var a Agent
	err := s.opts.Database.Query(ctx, func(tx database.Tx) (err error) {
		// The index contains hashes, so the time of the search reveals nothing about a token.
		a, err = s.scanAgent(tx.QueryRowContext(ctx, `SELECT `+agentColumns+` FROM agent WHERE token_hash = ?`,
			hashToken(token)))
		return err
	})
	if errors.Is(err, ErrUnknown) {
		return Agent{}, ErrToken
	}
	if err == nil && a.Status == Killed {
		return Agent{}, ErrToken
	}
	return a, err
}

// Selection filters a list of agents. The zero value selects all.
type Selection struct {
	Owner   string // the caller who registered them
	Profile string
	Created audit.Period // when they were registered
}

// SelectFor selects the agents that a caller may see, see caller.Caller.May.
func SelectFor(who caller.Caller) Selection {
	if slices.Contains(who.Scopes, caller.ScopeAdmin) {
		return Selection{Profile: who.Profile}
	}
	return Selection{Owner: who.Name(), Profile: who.Profile}
}

// query returns the statement that selects at most n agents, ordered by ID, starting after the ID
// after. Conditions that are not needed are left out, so that the others use an index.
func (only Selection) query(after string, n int) (query string, args []any) {
	query, args = `SELECT `+agentColumns+` FROM agent WHERE id > ?`, []any{after}
	if only.Owner != "" {
		query, args = query+` AND owner = ?`, append(args, only.Owner)
	}
	if !only.Created.Since.IsZero() {
		query, args = query+` AND created >= ?`, append(args, only.Created.Since.Unix())
	}
	if !only.Created.Until.IsZero() {
		query, args = query+` AND created < ?`, append(args, only.Created.Until.Unix())
	}
	if only.Profile != "" {
		query, args = query+` AND json_extract(inherited, '$.profile') = ?`, append(args, only.Profile)
	}
	return query + ` ORDER BY id LIMIT ?`, append(args, n)
}

// List returns at most n selected agents, ordered by ID, starting after the ID after.
func (s *Service) List(ctx context.Context, only Selection, after string, n int) ([]Agent, error) {
	query, args := only.query(after, n)
	return database.Rows(ctx, s.opts.Database, query, args, func(rows *sql.Rows) (Agent, error) {
		return s.scanAgent(rows)
	})
}

// Budget returns the limits and the spending of an agent.
func (s *Service) Budget(ctx context.Context, id string) (standing budget.Standing, err error) {
	err = s.opts.Database.View(ctx, func(tx database.Tx) error {
		a, err := s.find(ctx, tx, id)
		if err != nil {
			return err
		}
		standing, err = s.ledger.Standing(ctx, tx, a.LedgerAccount())
		return err
	})
	return standing, err
}
