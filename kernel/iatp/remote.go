package iatp

import (
	"context"
	"fmt"
	"slices"

	"github.com/airlock-mcp/airlock/internal/database"
)

// Remote is an agent that is registered elsewhere and pinned here.
type Remote struct {
	Agent      string `json:"agent_id"`
	Level      Level  `json:"trust_level"`
	Suspended  bool   `json:"suspended"`
	Reputation Score  `json:"reputation"`
}

// Remotes returns all pinned agents in the order of their IDs.
func (s *Service) Remotes(ctx context.Context) ([]Remote, error) {
	all := []Remote{}
	err := s.opts.Database.View(ctx, func(tx database.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT agent, level, remote FROM manifest WHERE remote > 0 ORDER BY agent`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r Remote
			var state remote
			if err := rows.Scan(&r.Agent, &r.Level, &state); err != nil {
				return err
			}
			r.Suspended = state == suspended
			all = append(all, r)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for i := range all {
			if all[i].Reputation, _, err = standing(ctx, tx, all[i].Agent); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// SetLevel changes the trust level of a pinned agent.
func (s *Service) SetLevel(ctx context.Context, agent string, level Level, by string) error {
	if !slices.Contains(Levels, level) {
		return &Refusal{fmt.Sprintf("there is no trust level %q", level)}
	}
	return s.change(ctx, agent, by, "trust level "+string(level),
		`UPDATE manifest SET level = ? WHERE agent = ? AND remote > 0`, level, agent)
}

// Suspend makes a pinned agent fail every verification until Resume.
func (s *Service) Suspend(ctx context.Context, agent, by string) error {
	return s.change(ctx, agent, by, "suspended", `UPDATE manifest SET remote = ? WHERE agent = ? AND remote > 0`,
		suspended, agent)
}

// Resume ends a suspension.
func (s *Service) Resume(ctx context.Context, agent, by string) error {
	return s.change(ctx, agent, by, "resumed", `UPDATE manifest SET remote = ? WHERE agent = ? AND remote > 0`, pinned,
		agent)
}

// Unpin removes the manifest and the keys of a pinned agent. Its reputation and its used
// attestations are kept, so that a later pin does not reset them.
func (s *Service) Unpin(ctx context.Context, agent, by string) error {
	return s.change(ctx, agent, by, "unpinned", `DELETE FROM manifest WHERE agent = ? AND remote > 0`, agent)
}

// change records a change of a pinned agent and executes the statement.
func (s *Service) change(ctx context.Context, agent, by, what, statement string, args ...any) error {
	st, err := s.storedManifest(ctx, agent)
	if err != nil || st.remote == local {
		return &Refusal{fmt.Sprintf("Agent %q is not pinned", agent)}
	}
	if err := s.record(ctx, by, fmt.Sprintf("agent %s %s", agent, what)); err != nil {
		return err
	}
	return s.opts.Database.Update(ctx, func(tx database.Tx) error {
		done, err := tx.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return &Refusal{fmt.Sprintf("Agent %q is not pinned", agent)}
		}
		if what == "unpinned" {
			_, err = tx.ExecContext(ctx, `DELETE FROM agent_key WHERE agent = ?`, agent)
		}
		return err
	})
}
