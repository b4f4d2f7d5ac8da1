package iatp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/database"
)

// Remote is an agent that is registered elsewhere and pinned here.
type Remote struct {
	Agent      string `json:"agent_id"`
	Level      Level  `json:"trust_level"`
	Suspended  bool   `json:"suspended"`
	Reputation Score  `json:"reputation"`
}

// ErrNotPinned is returned for an agent that is not pinned here.
var ErrNotPinned = errors.New("is not pinned")

// Remotes returns at most n pinned agents in the order of their IDs, starting after the ID after. If
// n is negative, it returns all.
func (s *Service) Remotes(ctx context.Context, after string, n int) ([]Remote, error) {
	if n < 0 {
		n = math.MaxInt
	}
	return s.remotes(ctx, `agent > ? ORDER BY agent LIMIT ?`, after, n)
}

// Remote returns a pinned agent, or ErrNotPinned.
func (s *Service) Remote(ctx context.Context, agent string) (Remote, error) {
	found, err := s.remotes(ctx, `agent = ?`, agent)
	if err == nil && len(found) == 0 {
		err = notPinned(agent)
	}
	if err != nil {
		return Remote{}, err
	}
	return found[0], nil
}

func notPinned(agent string) error { return fmt.Errorf("agent %q %w", agent, ErrNotPinned) }

func (s *Service) remotes(ctx context.Context, which string, args ...any) ([]Remote, error) {
	return database.Rows(ctx, s.opts.Database, `SELECT agent, level, remote, (SELECT coalesce(sum(change), 0)
		FROM reputation WHERE reputation.agent = manifest.agent) FROM manifest WHERE remote > 0 AND `+which, args,
		func(rows *sql.Rows) (r Remote, err error) {
			var state remote
			err = rows.Scan(&r.Agent, &r.Level, &state, &r.Reputation)
			r.Suspended, r.Reputation = state == suspended, reputationAfter(r.Reputation)
			return r, err
		})
}

// RemoteChange is a change of a pinned agent. A field that is nil changes nothing.
type RemoteChange struct {
	Level     *Level `json:"trust_level"` // one of Levels
	Suspended *bool  `json:"suspended"`   // a suspended agent fails every verification
}

// ChangeRemote changes a pinned agent and returns it as it is then. The error is a *Refusal of the
// change, or ErrNotPinned.
func (s *Service) ChangeRemote(ctx context.Context, agent string, c RemoteChange, by string) (Remote, error) {
	var what []string
	var level, state any
	if c.Level != nil {
		if !slices.Contains(Levels, *c.Level) {
			return Remote{}, &Refusal{fmt.Sprintf("trust_level: there is no level %q", *c.Level)}
		}
		level, what = *c.Level, append(what, "trust level "+string(*c.Level))
	}
	switch {
	case c.Suspended == nil:
	case *c.Suspended:
		state, what = suspended, append(what, "suspended")
	default:
		state, what = pinned, append(what, "resumed")
	}
	if len(what) == 0 {
		return Remote{}, &Refusal{"the change is empty: it has trust_level, suspended or both"}
	}
	err := s.change(ctx, agent, by, strings.Join(what, ", "), func(tx database.Tx) (bool, error) {
		return database.Changed(ctx, tx, `UPDATE manifest SET level = coalesce(?, level), remote = coalesce(?, remote)
			WHERE agent = ? AND remote > 0`, level, state, agent)
	})
	if err != nil {
		return Remote{}, err
	}
	return s.Remote(ctx, agent)
}

// Unpin removes the manifest and the keys of a pinned agent. Its reputation and its used
// attestations are kept, so that a later pin does not reset them. The error may be ErrNotPinned.
func (s *Service) Unpin(ctx context.Context, agent, by string) error {
	return s.change(ctx, agent, by, "unpinned", func(tx database.Tx) (bool, error) {
		done, err := database.Changed(ctx, tx, `DELETE FROM manifest WHERE agent = ? AND remote > 0`, agent)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM agent_key WHERE agent = ?`, agent)
		}
		return done, err
	})
}

// change records a change of a pinned agent and makes it.
func (s *Service) change(ctx context.Context, agent, by, what string,
	do func(database.Tx) (changed bool, err error)) error {
	if _, err := s.Remote(ctx, agent); err != nil {
		return err
	}
	if err := s.record(ctx, by, fmt.Sprintf("agent %s %s", agent, what)); err != nil {
		return err
	}
	return s.opts.Database.Update(ctx, func(tx database.Tx) error {
		changed, err := do(tx)
		if err == nil && !changed {
			err = notPinned(agent)
		}
		return err
	})
}
