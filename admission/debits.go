package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// debits keeps the record of each debit and refund in the transaction of the ledger, until the audit
// log has it. A process that is killed between the two leaves the row, and the next start writes the
// record. The zero value is ready to use.
type debits struct {
	mu       sync.Mutex // guards recorded
	recorded []string   // IDs of rows whose records are in the log; the next debit deletes them
}

// keepDebit stores the record of a debit or refund, which is not written before the transaction ends. It
// sets e.debit, the ID of the record.
func (e *evaluation) keepDebit(ctx context.Context, tx database.Tx, record func() audit.Record) error {
	e.debit = telemetry.NewID("debit")
	raw, err := json.Marshal(record())
	if err != nil {
		return err
	}
	e.forgetting = append(e.forgetting, e.takeRecorded()...)
	if err := deleteDebits(ctx, tx, e.forgetting); err != nil {
		return err
	}
	_, err = database.ExecKeeping(ctx, tx, `INSERT INTO budget_debit VALUES (?, ?, ?)`, e.debit, e.process, string(raw))
	return err
}

// debitRecorded is called when the record of the newest debit is in the log.
func (e *evaluation) debitRecorded() {
	e.debits.mu.Lock()
	defer e.debits.mu.Unlock()
	e.debits.recorded = append(e.debits.recorded, e.debit)
	e.forgetting = nil
}

// takeRecorded returns the rows whose records are in the log, for the caller to delete. If its
// transaction fails, they stay until the next start, which finds their records.
func (g *agentGate) takeRecorded() []string {
	g.debits.mu.Lock()
	defer g.debits.mu.Unlock()
	ids := g.debits.recorded
	g.debits.recorded = nil
	return ids
}

func deleteDebits(ctx context.Context, tx database.Tx, ids []string) error {
	for _, id := range ids {
		if _, err := database.ExecKeeping(ctx, tx, `DELETE FROM budget_debit WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

// closeDebits deletes the rows of the last debits.
func (g *agentGate) closeDebits() {
	ctx := context.Background() // nobody waits for it
	ids := g.takeRecorded()
	err := g.opts.Database.Update(ctx, func(tx database.Tx) error { return deleteDebits(ctx, tx, ids) })
	if err != nil {
		g.logger.WarnContext(ctx, "the records of the last debits are compared with the audit log at the next start",
			slog.Any(telemetry.KeyError, err))
	}
}

// Reconcile writes the records of debits and refunds that a killed process has not written. recorded
// returns those of the IDs that the audit log has, and whether it has read all of the log. The ledger
// is not changed: a debit whose decision was not recorded stays, because its step is committed.
func (s *Service) Reconcile(ctx context.Context,
	recorded func(ids []string) (found map[string]bool, whole bool, err error)) error {
	g := s.agents.Load()
	if g == nil {
		return ErrNoAgents
	}
	left, err := g.leftDebits(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	var ids []string
	for _, r := range left {
		ids = append(ids, r.DebitID)
	}
	found, whole, err := recorded(ids)
	if err != nil {
		return fmt.Errorf("looking for debits in the audit log: %w", err)
	}
	for _, r := range left {
		switch {
		case found[r.DebitID]:
			continue
		case !whole:
			g.logger.WarnContext(ctx, "a debit is not recorded again: not all of the audit log was searched for it",
				slog.String("debit", r.DebitID))
			continue
		}
		r.Detail = "found at the start: the process was killed before it recorded this"
		if err := g.log.Append(ctx, r); err != nil {
			return err
		}
	}
	return g.opts.Database.Update(ctx, func(tx database.Tx) error { return deleteDebits(ctx, tx, ids) })
}

// leftDebits returns the records of the debits of processes that have ended.
func (g *agentGate) leftDebits(ctx context.Context) (left []audit.Record, err error) {
	err = g.opts.Database.View(ctx, func(tx database.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT id, process, record FROM budget_debit ORDER BY id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, process, raw string
			if err := rows.Scan(&id, &process, &raw); err != nil {
				return err
			}
			if lives, _ := procfs.Lives(process); lives {
				continue
			}
			var r audit.Record
			if err := strictjson.UnmarshalOpen([]byte(raw), &r); err != nil {
				return fmt.Errorf("reading debit %q: %w", id, err)
			}
			left = append(left, r)
		}
		return rows.Err()
	})
	return left, err
}

// thisProcess returns the name of this process, or "" if it cannot be found.
func thisProcess() string {
	name, _ := procfs.Name(os.Getpid())
	return name
}
