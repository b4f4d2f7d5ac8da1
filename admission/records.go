package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/procfs"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// syncEvery is how many records are kept in the database at least before the log is synced for them.
const syncEvery = 256

// keptRecords are the records that transactions have kept in the database until the audit log has
// them on stable storage: those of announcements, so that a decision waits for the disk once, and
// those of debits and refunds. Those of one commit share a row. A process that is killed, or a machine
// that stops, leaves their rows, and the next start writes the records that the log does not have. The
// zero value is ready to use.
type keptRecords struct {
	mu       sync.Mutex // guards the fields below, and the field left of rows
	unsynced int        // number of records in the log that are perhaps not on stable storage
	recorded []string   // IDs of rows whose records are in the log, perhaps not on stable storage
	durable  []string   // IDs of rows whose records are; the next transaction deletes them
}

// keptRow is a row of kept records.
type keptRow struct {
	id   string
	left int // number of records that are not in the log
}

// keptRecord is a record that the transaction has kept. It has its row when the transaction is committed.
type keptRecord struct {
	audit.Record
	row *keptRow
}

// keptWrite keeps the records of the updates that share a commit.
type keptWrite struct {
	process string
	records []*keptRecord
	forget  []string // IDs of rows to delete
}

// keptKey is the key of a keptWrite: all are merged.
type keptKey struct{}

// Key returns the same for all.
func (*keptWrite) Key() any { return keptKey{} }

// After returns the earlier write with the records of this one.
func (w *keptWrite) After(earlier database.Write) database.Write {
	all := earlier.(*keptWrite)
	all.records, all.forget = append(all.records, w.records...), append(all.forget, w.forget...)
	return all
}

// Execute stores the row.
func (w *keptWrite) Execute(ctx context.Context, tx database.Tx) error {
	row := &keptRow{id: w.records[0].DebitID, left: len(w.records)}
	var lines []byte
	for _, r := range w.records {
		text, err := r.Text()
		if err != nil {
			return err
		}
		lines, r.row = append(append(lines, text...), '\n'), row
	}
	if err := deleteKept(ctx, tx, w.forget); err != nil {
		return err
	}
	_, err := database.ExecKeeping(ctx, tx, `INSERT INTO budget_debit VALUES (?, ?, ?)`, row.id, w.process,
		string(lines))
	return err
}

// keepRecord stores a record in the transaction. The caller must call noteKept after the commit.
func (e *evaluation) keepRecord(ctx context.Context, tx database.Tx, r audit.Record) error {
	r.DebitID = telemetry.NewID("debit")
	e.forgetting = append(e.forgetting, e.records.takeDurable()...)
	e.kept = &keptRecord{Record: r}
	return database.Later(ctx, tx, &keptWrite{e.process, []*keptRecord{e.kept}, e.forgetting})
}

// noteKept writes the kept record to the audit log.
func (e *evaluation) noteKept(ctx context.Context) error {
	r := e.kept
	e.kept, e.forgetting = nil, nil
	if err := e.log.NoteKept(ctx, r.Record); err != nil {
		return err // the row stays
	}
	e.records.wrote(r.row, e.log.Sync)
	return nil
}

// wrote is called when a record of a row is in the log. One call in syncEvery syncs it. If that
// fails, the rows stay until the next start.
func (k *keptRecords) wrote(row *keptRow, sync func() error) {
	k.mu.Lock()
	if row.left--; row.left == 0 {
		k.recorded = append(k.recorded, row.id)
	}
	var ids []string
	if k.unsynced++; k.unsynced >= syncEvery {
		ids, k.recorded, k.unsynced = k.recorded, nil, 0
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
	left, rows, err := g.leftRecords(ctx)
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
	return g.opts.Database.Update(ctx, func(tx database.Tx) error { return deleteKept(ctx, tx, rows) })
}

// leftRecords returns the records that processes have kept that have ended, and the IDs of their rows.
func (g *agentGate) leftRecords(ctx context.Context) (left []audit.Record, ids []string, err error) {
	err = g.opts.Database.View(ctx, func(tx database.Tx) error {
		left, ids = nil, nil
		var id, process, text string
		query := `SELECT id, process, record FROM budget_debit ORDER BY id`
		return database.ScanRows(ctx, tx, query, nil, []any{&id, &process, &text}, func() error {
			owner, name, ofNode := strings.Cut(process, NodeMark)
			if !ofNode {
				owner, name = "", process
			}
			// The log of another node has the records of its rows.
			if lives, _ := procfs.Lives(name); lives || owner != g.opts.Node.Name() {
				return nil
			}
			ids = append(ids, id)
			for line := range strings.Lines(text) {
				var r audit.Record
				if err := strictjson.UnmarshalOpen([]byte(line), &r); err != nil {
					return fmt.Errorf("reading debit %q: %w", id, err)
				}
				left = append(left, r)
			}
			return nil
		})
	})
	return left, ids, err
}

// NodeMark follows the name of a node in the column process of kept records.
const NodeMark = "@"

// thisProcess returns the name of this process, or "" if it cannot be found, after the name of its node in a cluster.
func thisProcess(node string) string {
	name, _ := procfs.Name(os.Getpid())
	if node != "" {
		return node + NodeMark + name
	}
	return name
}
