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

// syncEvery is how many records are kept in the database at least before the log is synced for them.
const syncEvery = 64

// keptRecords are the records that transactions have kept in the database until the audit log has
// them on stable storage: those of announcements, so that a decision waits for the disk once, and
// those of debits and refunds. A process that is killed, or a machine that stops, leaves their rows,
// and the next start writes the records that the log does not have. The zero value is ready to use.
type keptRecords struct {
	mu       sync.Mutex // guards the fields below
	recorded []string   // IDs of rows whose records are in the log, perhaps not on stable storage
	durable  []string   // IDs of rows whose records are; the next transaction deletes them
}

// keepRecord stores a record in the transaction. The caller must call noteKept after the commit.
func (e *evaluation) keepRecord(ctx context.Context, tx database.Tx, r audit.Record) error {
	r.DebitID = telemetry.NewID("debit")
	raw, err := r.Text()
	if err != nil {
		return err
	}
	e.forgetting = append(e.forgetting, e.records.takeDurable()...)
	if err := deleteKept(ctx, tx, e.forgetting); err != nil {
		return err
	}
	_, err = database.ExecKeeping(ctx, tx, `INSERT INTO budget_debit VALUES (?, ?, ?)`, r.DebitID, e.process, string(raw))
	e.kept = &r
	return err
}

// noteKept writes the kept record to the audit log.
func (e *evaluation) noteKept(ctx context.Context) error {
	r := *e.kept
	e.kept, e.forgetting = nil, nil
	if err := e.log.NoteKept(ctx, r); err != nil {
		return err // the row stays
	}
	e.records.wrote(r.DebitID, e.log.Sync)
	return nil
}

// wrote is called when the record of a row is in the log. One call in syncEvery syncs it. If that
// fails, the rows stay until the next start.
func (k *keptRecords) wrote(id string, sync func() error) {
	k.mu.Lock()
	k.recorded = append(k.recorded, id)
	var ids []string
	if len(k.recorded) >= syncEvery {
		ids, k.recorded = k.recorded, nil
	}
	k.mu.Unlock()
	if len(ids) == 0 || sync() != nil {
		return
	}
	k.mu.Lock()
	k.durable = append(k.durable, ids...)
	k.mu.Unlock()
}

// takeDurable returns the rows for the caller to delete. If its transaction fails, they stay until
// the next start, which finds their records.
func (k *keptRecords) takeDurable() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	ids := k.durable
	k.durable = nil
	return ids
}

func deleteKept(ctx context.Context, tx database.Tx, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	_, err = database.ExecKeeping(ctx, tx, `DELETE FROM budget_debit WHERE id IN (SELECT value FROM json_each(?))`,
		string(list))
	return err
}

// closeRecords deletes the rows of the last records.
func (g *agentGate) closeRecords() {
	ctx := context.Background() // nobody waits for it
	g.records.mu.Lock()
	ids := append(g.records.durable, g.records.recorded...)
	g.records.mu.Unlock()
	err := g.log.Sync()
	if err == nil && len(ids) > 0 {
		err = g.opts.Database.Update(ctx, func(tx database.Tx) error { return deleteKept(ctx, tx, ids) })
	}
	if err != nil {
		g.logger.WarnContext(ctx, "the last records of agents are compared with the audit log at the next start",
			slog.Any(telemetry.KeyError, err))
	}
}

// Reconcile writes the kept records that a killed process has not written. recorded
// returns those of the IDs that the audit log has, and whether it has read all of the log. The ledger
// is not changed: a debit whose decision was not recorded stays, because its step is committed.
func (s *Service) Reconcile(ctx context.Context,
	recorded func(ids []string) (found map[string]bool, whole bool, err error)) error {
	g := s.agents.Load()
	if g == nil {
		return ErrNoAgents
	}
	left, err := g.leftRecords(ctx)
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
	return g.opts.Database.Update(ctx, func(tx database.Tx) error { return deleteKept(ctx, tx, ids) })
}

// leftRecords returns the records that processes have kept that have ended.
func (g *agentGate) leftRecords(ctx context.Context) (left []audit.Record, err error) {
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
