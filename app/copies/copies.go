// Package copies keeps copies of the recordings and the attached files of runs in the object store of a cluster. Other
// nodes read them when the node of a run is lost.
//
// Each node copies what its stores keep, and removes the copies of what they keep no more. So the retention, the sizes
// and the removals of the stores apply to the copies. Those of lost nodes are removed by the others when they are too
// old. A copy is encrypted with the key of the cluster, which the object store never sees.
package copies

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Schema makes the table of the copies.
const Schema = `
CREATE TABLE run_copy (
	run     TEXT NOT NULL,
	kind    TEXT NOT NULL,
	node    TEXT NOT NULL, -- the name of the node that has made the copy
	changed INTEGER NOT NULL, -- when the original was changed last, in nanoseconds since 1970; negative: not stored yet
	PRIMARY KEY (run, kind)
) STRICT;`

const (
	// interval is how often a node looks for runs to copy.
	interval = 2 * time.Second
	// settled is how long ago a store must have changed before its next change surely has another time.
	settled = 5 * time.Second
	// wholeInterval is how often all runs are compared in any case: the stores do not change when files become too old.
	wholeInterval = time.Minute
	// expiryInterval is how often it looks for copies that are too old.
	expiryInterval = time.Hour
	// fetchTime is how long a request waits for a copy.
	fetchTime = 15 * time.Second
)

// Store has one kind of files of runs on this machine. Its methods are safe for concurrent use.
type Store interface {
	// Changed returns when files were added, changed or removed last, by any process. A file that has become too old is
	// not a change.
	Changed() (time.Time, error)
	// Kept returns the runs whose files are kept, with the times of their last changes.
	Kept() (map[string]time.Time, error)
	// Export returns the files of a run. If there are none, the error wraps fs.ErrNotExist. If they are too large for a
	// copy, the error wraps objects.ErrTooLarge.
	Export(run string) ([]byte, error)
	// Import stores what Export has returned on another machine, as changed at a time. It does nothing if the store has
	// files of the run.
	Import(run string, content []byte, changed time.Time) error
}

// Kind is a kind of files.
type Kind struct {
	Name  string // part of the names of objects
	Store Store
	Keep  time.Duration // how long the store keeps files
}

// Options are all required.
type Options struct {
	Database *database.DB
	Key      *agekey.Key // of the cluster
	Objects  *objects.Store
	Node     string // the name of this node
	Kinds    []Kind
	Logger   *slog.Logger
}

// Copies copies the files of runs. Its methods are safe for concurrent use.
type Copies struct {
	opts Options
	own  *agekey.Own

	mu      sync.Mutex           // guards the fields below, also while objects are stored
	known   map[name]row         // the copies that exist
	skipped map[name]int64       // files without a copy, with row.changed: too large, unreadable, or older than a copy
	mine    map[name]bool        // files that this process has seen; true: their copy is of this node
	loaded  bool                 // known has those of the database
	seen    map[string]time.Time // when the store of each kind had changed that was compared last
	whole   time.Time            // when all runs were compared last
	failed  bool                 // the last attempt has failed
	expired time.Time            // when old copies were looked for last
}

type name struct{ run, kind string }

// row is a row of the table.
type row struct {
	node    string
	changed int64
}

// age returns how long ago the original was changed.
func (r row) age() time.Duration { return time.Since(time.Unix(0, r.at())) }

// at returns when the original was changed.
func (r row) at() int64 { return max(r.changed, -r.changed) }

func (n name) object() string { return path.Join("runs", n.run, n.kind) }

// content is an object. It has its own name, so that none passes for another.
type content struct {
	Run     string    `json:"run"`
	Kind    string    `json:"kind"`
	Changed time.Time `json:"changed"`
	Data    []byte    `json:"data"`
}

// New returns copies that are made after Start.
func New(opts Options) *Copies {
	return &Copies{opts: opts, own: agekey.OwnOf(opts.Key), known: map[name]row{}, skipped: map[name]int64{},
		mine: map[name]bool{}, seen: map[string]time.Time{}}
}

// Start copies what the stores keep until stop is called. stop waits for a copy that is being made.
func (c *Copies) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				c.attempt(ctx)
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// attempt copies what is new. A failure is logged once.
func (c *Copies) attempt(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.copyLocked(ctx)
	if err != nil && !c.failed && ctx.Err() == nil {
		c.opts.Logger.WarnContext(ctx, "copies of the files of runs wait for the object store",
			slog.Any(telemetry.KeyError, err))
	}
	c.failed = err != nil
}

func (c *Copies) copyLocked(ctx context.Context) error {
	if !c.loaded {
		if err := c.loadLocked(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	whole := began.Sub(c.whole) >= wholeInterval
	for _, kind := range c.opts.Kinds {
		changed, err := kind.Store.Changed()
		if err == nil && (whole || !changed.Equal(c.seen[kind.Name])) {
			err = c.compareLocked(ctx, kind)
		}
		if err != nil {
			return err
		}
		if c.seen[kind.Name] = changed; began.Sub(changed) < settled {
			delete(c.seen, kind.Name)
		}
	}
	if whole {
		c.whole = began
	}
	if time.Since(c.expired) < expiryInterval {
		return nil
	}
	if err := c.expireLocked(ctx); err != nil {
		return err
	}
	c.expired = time.Now()
	return nil
}

// compareLocked copies the files of a kind that are new, and removes the copies of those that are kept no more.
func (c *Copies) compareLocked(ctx context.Context, kind Kind) error {
	kept, err := kind.Store.Kept()
	if err != nil {
		return err
	}
	for run, changed := range kept {
		n := name{run, kind.Name}
		if at := changed.UnixNano(); c.known[n].changed != at && c.skipped[n] != at {
			if err := c.updateLocked(ctx, n, kind.Store, changed); err != nil {
				return fmt.Errorf("copying the files of run %q: %w", run, err)
			}
		}
		c.mine[n] = c.known[n].node == c.opts.Node
	}
	gone := func(n name) bool {
		_, there := kept[n.run]
		return n.kind == kind.Name && !there
	}
	maps.DeleteFunc(c.skipped, func(n name, _ int64) bool { return gone(n) })
	for n, mine := range maps.Clone(c.mine) {
		if !gone(n) {
			continue
		}
		if err := c.forgetLocked(ctx, n, mine); err != nil {
			return err
		}
	}
	return nil
}

// loadLocked reads which copies there are.
func (c *Copies) loadLocked(ctx context.Context) (err error) {
	c.known, err = load(ctx, c.opts.Database)
	c.loaded = err == nil
	return err
}

func load(ctx context.Context, db *database.DB) (all map[name]row, err error) {
	err = db.Query(ctx, func(tx database.Tx) error {
		all = map[name]row{}
		var n name
		var r row
		into := []any{&n.run, &n.kind, &r.node, &r.changed}
		return database.ScanRows(ctx, tx, "SELECT run, kind, node, changed FROM run_copy", nil, into, func() error {
			all[n] = r
			return nil
		})
	})
	return all, err
}

// readLocked reads the row of a copy, which another process may have changed.
func (c *Copies) readLocked(ctx context.Context, n name) error {
	r, err := read(ctx, c.opts.Database, n)
	switch {
	case err != nil:
		return err
	case r == row{}:
		delete(c.known, n)
	default:
		c.known[n] = r
	}
	return nil
}

// read returns the row of a copy, or the zero value if there is none.
func read(ctx context.Context, db *database.DB, n name) (r row, err error) {
	err = db.QueryRow(ctx, "SELECT node, changed FROM run_copy WHERE run = ? AND kind = ?", []any{n.run, n.kind},
		&r.node, &r.changed)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return r, err
}

// updateLocked copies the files of a run, if there is no copy of another node that is as new: then they were read from
// that copy, or the run went on there.
func (c *Copies) updateLocked(ctx context.Context, n name, from Store, changed time.Time) error {
	if err := c.readLocked(ctx, n); err != nil {
		return err
	}
	at := changed.UnixNano()
	r, there := c.known[n]
	if r.changed == at {
		return nil
	}
	if there && r.node != c.opts.Node && r.at() >= at {
		c.skipped[n] = at
		return nil
	}
	data, err := from.Export(n.run)
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		return nil
	case err != nil:
		c.skipLocked(ctx, n, at, err)
		return nil
	}
	err = c.putLocked(ctx, n, content{n.run, n.kind, changed, data})
	if errors.Is(err, objects.ErrTooLarge) {
		c.skipLocked(ctx, n, at, err)
		err = nil
	}
	return err
}

// skipLocked has files not be copied until they change.
func (c *Copies) skipLocked(ctx context.Context, n name, at int64, reason error) {
	c.opts.Logger.WarnContext(ctx, "files of a run are not copied", slog.String(telemetry.KeyRun, n.run),
		slog.String("kind", n.kind), slog.Any(telemetry.KeyError, reason))
	c.skipped[n] = at
}

// putLocked stores a copy. The row is stored first, so that no copy is left without one. Its time is negative until the
// object is stored, so that a process that ends in between is made up for by the next one.
func (c *Copies) putLocked(ctx context.Context, n name, files content) error {
	text, err := json.Marshal(files)
	if err != nil {
		return err
	}
	sealed, err := agekey.Seal(c.own, text)
	if err != nil {
		return err
	}
	r := row{c.opts.Node, -files.Changed.UnixNano()}
	if err := c.opts.Database.Exec(ctx, `INSERT INTO run_copy VALUES (?, ?, ?, ?) ON CONFLICT (run, kind)
		DO UPDATE SET node = excluded.node, changed = excluded.changed`, n.run, n.kind, r.node, r.changed); err != nil {
		return err
	}
	c.known[n] = r
	if err := c.opts.Objects.Put(ctx, n.object(), sealed); err != nil {
		return err
	}
	r.changed = r.at()
	if err := c.opts.Database.Exec(ctx, "UPDATE run_copy SET changed = ? WHERE run = ? AND kind = ? AND node = ?",
		r.changed, n.run, n.kind, r.node); err != nil {
		return err
	}
	c.known[n] = r
	return nil
}

// forgetLocked removes the copy of files that were removed, if it is of this node. Another node may have copied the run
// meanwhile.
func (c *Copies) forgetLocked(ctx context.Context, n name, mine bool) error {
	if mine {
		if err := c.readLocked(ctx, n); err != nil {
			return err
		}
		if c.known[n].node == c.opts.Node {
			return c.removeLocked(ctx, n)
		}
	}
	delete(c.mine, n)
	return nil
}

// removeLocked removes a copy. The row is removed last.
func (c *Copies) removeLocked(ctx context.Context, n name) error {
	if err := c.opts.Objects.Delete(ctx, n.object()); err != nil {
		return err
	}
	if err := c.opts.Database.Exec(ctx, "DELETE FROM run_copy WHERE run = ? AND kind = ?", n.run, n.kind); err != nil {
		return err
	}
	delete(c.known, n)
	delete(c.mine, n)
	return nil
}

// expireLocked removes the copies that are older than their stores keep files, also those of lost nodes.
func (c *Copies) expireLocked(ctx context.Context) error {
	if err := c.loadLocked(ctx); err != nil {
		return err
	}
	for _, kind := range c.opts.Kinds {
		for n, r := range maps.Clone(c.known) {
			if n.kind != kind.Name || r.age() < kind.Keep {
				continue
			}
			if err := c.removeLocked(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove removes the copies of a kind of the files of a run.
func (c *Copies) Remove(ctx context.Context, run, kind string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removeLocked(ctx, name{run, kind})
}

// Fetch stores the copies of a run in the stores of this machine. If the run has no copies, it returns nil.
func (c *Copies) Fetch(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	for _, kind := range c.opts.Kinds {
		if err := c.fetch(ctx, name{run, kind.Name}, kind.Store); err != nil {
			return fmt.Errorf("the copy of run %q: %w", run, err)
		}
	}
	return nil
}

func (c *Copies) fetch(ctx context.Context, n name, to Store) error {
	r, err := read(ctx, c.opts.Database, n)
	if err == nil && r == (row{}) {
		return nil
	}
	var sealed, text []byte
	if err == nil {
		sealed, err = c.opts.Objects.Get(ctx, n.object())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		text, err = agekey.Open(sealed, c.own)
	}
	var copied content
	if err == nil {
		err = strictjson.UnmarshalOpen(text, &copied)
	}
	if err == nil && (copied.Run != n.run || copied.Kind != n.kind) {
		err = errors.New("it is the copy of other files")
	}
	if err != nil {
		return err
	}
	return to.Import(n.run, copied.Data, copied.Changed)
}
