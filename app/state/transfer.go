package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
)

// transferred are the tables of the state that is moved between a single machine and a cluster, in an order that keeps
// references. Open questions end with the process that asks, and triggers make agent_credential.
func transferred() []string {
	return []string{"agent", "conversation", "token", "credential_use", "vfs", "agent_key", "manifest", "attestation",
		"reputation", "taint", "budget_limit", "budget_usage", "budget_debit", "sign_in", "sign_out",
		"pin_set", "pin"}
}

const (
	stateFile = "state.db"
	// importedFile is the name of the state after it was moved into a cluster.
	importedFile = "state.db.imported"
	// transferBatch is the number of rows in one transaction.
	transferBatch = 200
)

// transfer moves rows from one database to another.
type transfer struct {
	from, to *database.DB
	opens    age.Identity  // decrypts the column sealed
	seals    age.Recipient // encrypts it again
	owner    func(process string) (string, bool)
	scope    func(pins string) (string, bool)
	rows     int
}

// endpoints are the two databases of a transfer, with their keys.
type endpoints struct {
	home, keys string // directories of this machine
	node       string
	shared     *database.DB // of the cluster; the caller must close it
	own, key   *agekey.Key  // of this machine, and of the cluster
}

// openEndpoints opens the database of the cluster, in which no node may serve.
func openEndpoints(ctx context.Context, c *config.Config) (p endpoints, err error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return p, err
	}
	served, err := approval.IsServed(directories.Home)
	switch {
	case err != nil:
		return p, err
	case served:
		return p, &setup.Error{Err: errors.New("an Airlock is running with the state of this machine"),
			Advice: "end the agent hosts, then run: airlock stop"}
	case c.Cluster.Database == "":
		return p, errNoCluster()
	}
	p.home, p.keys = directories.Home, directories.Keys
	if p.node, err = nodeName(c.Cluster); err != nil {
		return p, err
	}
	if p.own, err = agekey.LoadOrCreate(filepath.Join(directories.Keys, agentsKeyFile)); err != nil {
		return p, err
	}
	if p.shared, p.key, err = openCluster(ctx, c.Cluster); err != nil {
		return p, err
	}
	nodes, err := cluster.List(ctx, p.shared)
	for _, n := range nodes {
		if n.State == cluster.Alive || n.State == cluster.Leaving {
			err = &setup.Error{Err: fmt.Errorf("node %q of the cluster serves", n.Name),
				Advice: "end all nodes: airlock stop"}
		}
	}
	if err != nil {
		return p, errors.Join(err, p.shared.Close())
	}
	return p, nil
}

// ImportState moves the state of this machine into its cluster, which must be new, and returns the number of rows. The
// file is renamed.
func ImportState(ctx context.Context, c *config.Config) (rows int, err error) {
	p, err := openEndpoints(ctx, c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.shared.Close()) }()
	path := filepath.Join(p.home, stateFile)
	if _, err := os.Stat(path); err != nil {
		return 0, &setup.Error{Err: fmt.Errorf("this machine has no state: %w", err),
			Advice: "set AIRLOCK_HOME to the state directory"}
	}
	if err := checkEmpty(ctx, p.shared); err != nil {
		return 0, err
	}
	if err := checkNoneWaits(p.home, p.keys); err != nil {
		return 0, err
	}
	from, err := database.Open(ctx, path, Versions()...)
	if err != nil {
		return 0, err
	}
	if err := recordAct(ctx, c, "the state of this machine is moved into its cluster"); err != nil {
		return 0, errors.Join(err, from.Close())
	}
	t := &transfer{from: from, to: p.shared, opens: agekey.OwnOf(p.own), seals: p.key.Recipient(),
		owner: func(process string) (string, bool) { return p.node + admission.NodeMark + process, true },
		scope: func(pins string) (string, bool) { return "", pins == pinScope(c) }}
	if err := t.run(ctx); err != nil {
		return 0, errors.Join(err, clearTables(ctx, p.shared), from.Close())
	}
	if err := from.Close(); err != nil {
		return 0, err
	}
	return t.rows, os.Rename(path, filepath.Join(p.home, importedFile))
}

// ExportState copies the state of the cluster to this machine, which must have none, and returns the number of rows.
func ExportState(ctx context.Context, c *config.Config) (rows int, err error) {
	p, err := openEndpoints(ctx, c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.shared.Close()) }()
	path := filepath.Join(p.home, stateFile)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return 0, &setup.Error{Err: errors.Join(fmt.Errorf("%q exists already", path), err), Advice: "move it away"}
	}
	if err := checkNoneWaitsIn(ctx, p.shared); err != nil {
		return 0, err
	}
	if err := recordAct(ctx, c, "the state of the cluster is copied to this machine"); err != nil {
		return 0, err
	}
	draft := path + ".draft"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return 0, err
	}
	to, err := database.Open(ctx, draft, Versions()...)
	if err != nil {
		return 0, err
	}
	t := &transfer{from: p.shared, to: to, opens: agekey.OwnOf(p.key), seals: p.own.Recipient(),
		owner: func(process string) (string, bool) { return strings.CutPrefix(process, p.node+admission.NodeMark) },
		scope: func(pins string) (string, bool) { return pinScope(c), pins == "" }}
	if err := errors.Join(t.run(ctx), to.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(draft))
	}
	return t.rows, os.Rename(draft, path)
}

// checkNoneWaits returns an error if this machine has suspended runs, which are not moved.
func checkNoneWaits(home, keys string) error {
	files, err := suspended.Open(store.Suspended(home), keys)
	if err != nil {
		return err
	}
	runs, err := files.List()
	return errors.Join(err, refuseWaiting(len(runs)))
}

// checkNoneWaitsIn is checkNoneWaits for a cluster.
func checkNoneWaitsIn(ctx context.Context, db *database.DB) error {
	return db.View(ctx, func(tx database.Tx) error {
		var runs int
		err := tx.QueryRowContext(ctx, "SELECT count(*) FROM suspended_run").Scan(&runs)
		return errors.Join(err, refuseWaiting(runs))
	})
}

func refuseWaiting(runs int) error {
	if runs == 0 {
		return nil
	}
	return &setup.Error{Err: fmt.Errorf("suspended runs are not moved, and there are %d", runs),
		Advice: "start Airlock, answer their questions or cancel them in the console, and stop it again"}
}

// checkEmpty returns an error if a cluster has any state.
func checkEmpty(ctx context.Context, db *database.DB) error {
	return db.View(ctx, func(tx database.Tx) error {
		for _, table := range transferred() {
			if isPins(table) { // any command that reads the tools stores them
				continue
			}
			var there bool
			if err := tx.QueryRowContext(ctx, "SELECT count(*) > 0 FROM "+table).Scan(&there); err != nil {
				return err
			}
			if there {
				return &setup.Error{Err: errNotEmpty, Advice: "take a new database for the cluster: cluster.database"}
			}
		}
		return nil
	})
}

// run copies all tables to an empty database.
func (t *transfer) run(ctx context.Context) error {
	if err := deleteRows(ctx, t.to, slices.DeleteFunc(transferred(), func(table string) bool {
		return !isPins(table)
	})); err != nil {
		return err
	}
	for _, table := range transferred() {
		if err := t.copy(ctx, table); err != nil {
			return fmt.Errorf("copying the table %q: %w", table, err)
		}
	}
	if !t.to.IsShared() {
		return nil
	}
	return t.to.Update(ctx, func(tx database.Tx) error { // the next reputation follows the copied ones
		var next int64
		return tx.QueryRowContext(ctx, `SELECT setval(pg_get_serial_sequence('reputation', 'seq'),
			(SELECT coalesce(max(seq), 0) + 1 FROM reputation), false)`).Scan(&next)
	})
}

var errNotEmpty = errors.New("the cluster has tokens or agents already")

// copy copies the rows of a table in batches. It reads all of them first, because a transaction of PostgreSQL may not
// take as long as encrypting them again.
func (t *transfer) copy(ctx context.Context, table string) error {
	names, rows, err := t.read(ctx, table)
	if err != nil || len(rows) == 0 {
		return err
	}
	insert := "INSERT INTO " + table + " VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")"
	var batch [][]any
	for _, row := range rows {
		keep, err := t.translate(names, row)
		if err != nil {
			return err
		}
		if keep {
			batch = append(batch, row)
		}
		if len(batch) == transferBatch {
			if err := t.insert(ctx, insert, batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	return t.insert(ctx, insert, batch)
}

// read returns the columns and the rows of a table.
func (t *transfer) read(ctx context.Context, table string) (names []string, all [][]any, err error) {
	err = t.from.View(ctx, func(tx database.Tx) error {
		names, all = nil, nil
		return database.EachRow(ctx, tx, "SELECT * FROM "+table, nil, func(rows *sql.Rows) (err error) {
			if names, err = rows.Columns(); err != nil {
				return err
			}
			row, pointers := make([]any, len(names)), make([]any, len(names))
			for i := range row {
				pointers[i] = &row[i]
			}
			all = append(all, row)
			return rows.Scan(pointers...)
		})
	})
	return names, all, err
}

// translate encrypts a row for the target. keep reports whether the target gets it: the records that the process of
// another node has kept stay there.
func (t *transfer) translate(names []string, row []any) (keep bool, err error) {
	for i, name := range names {
		switch sealed, isBytes := row[i].([]byte); {
		case name == "sealed" && isBytes:
			plain, err := agekey.Open(sealed, t.opens)
			if err != nil {
				return false, err
			}
			if row[i], err = agekey.Seal(t.seals, plain); err != nil {
				return false, err
			}
		case name == "process":
			process, _ := row[i].(string)
			if row[i], keep = t.owner(process); !keep {
				return false, nil
			}
		case name == "scope":
			scope, _ := row[i].(string)
			if row[i], keep = t.scope(scope); !keep {
				return false, nil
			}
		}
	}
	return true, nil
}

func (t *transfer) insert(ctx context.Context, statement string, batch [][]any) error {
	t.rows += len(batch)
	return t.to.Update(ctx, func(tx database.Tx) error {
		for _, row := range batch {
			if _, err := tx.ExecContext(ctx, statement, row...); err != nil {
				return err
			}
		}
		return nil
	})
}

// clearTables removes the rows of a transfer that failed.
func clearTables(ctx context.Context, db *database.DB) error {
	return deleteRows(context.WithoutCancel(ctx), db, append([]string{"agent_credential"}, transferred()...))
}

// deleteRows empties tables, the last one first.
func deleteRows(ctx context.Context, db *database.DB, tables []string) error {
	return db.Update(ctx, func(tx database.Tx) error {
		for _, table := range slices.Backward(tables) {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
}

func isPins(table string) bool { return table == "pin_set" || table == "pin" }
