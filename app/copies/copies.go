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
	changed INTEGER NOT NULL, -- when the original was changed last, in nanoseconds since 1970
	PRIMARY KEY (run, kind)
) STRICT;`

const (
	// interval is how often a node looks for runs to copy.
	interval = 2 * time.Second
	// expiryInterval is how often it looks for copies that are too old.
	expiryInterval = time.Hour
	// fetchTime is how long a request waits for a copy.
	fetchTime = 15 * time.Second
)

// Store has one kind of files of runs on this machine. Its methods are safe for concurrent use.
type Store interface {
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

	mu      sync.Mutex         // guards the fields below, also while objects are stored
	known   map[name]time.Time // the copies that exist or are too large, with the times of their originals
	mine    map[name]bool      // those that this process has made
	loaded  bool               // known has those of the database
	failed  bool               // the last attempt has failed
	expired time.Time          // when old copies were looked for last

	importing sync.Mutex // guards imported
	imported  map[name]time.Time
}

type name struct{ run, kind string }

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
	return &Copies{opts: opts, own: agekey.OwnOf(opts.Key), known: map[name]time.Time{}, mine: map[name]bool{},
		imported: map[name]time.Time{}}
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
	c.importing.Lock()
	maps.Copy(c.known, c.imported) // they need not be copied again
	clear(c.imported)
	c.importing.Unlock()
	for _, kind := range c.opts.Kinds {
		kept, err := kind.Store.Kept()
		if err != nil {
			return err
		}
		for run, changed := range kept {
			n := name{run, kind.Name}
			if c.known[n].Equal(changed) {
				continue
			}
			if err := c.putLocked(ctx, n, kind.Store, changed); err != nil {
				return err
			}
		}
		for n := range maps.Clone(c.mine) {
			if _, there := kept[n.run]; n.kind != kind.Name || there {
				continue
			}
			if err := c.removeLocked(ctx, n); err != nil {
				return err
			}
		}
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

// loadLocked reads which copies there are.
func (c *Copies) loadLocked(ctx context.Context) error {
	err := c.opts.Database.View(ctx, func(tx database.Tx) error {
		clear(c.known)
		var n name
		var changed int64
		into := []any{&n.run, &n.kind, &changed}
		return database.ScanRows(ctx, tx, "SELECT run, kind, changed FROM run_copy", nil, into, func() error {
			c.known[n] = time.Unix(0, changed)
			return nil
		})
	})
	c.loaded = err == nil
	return err
}

// putLocked copies the files of a run. The row is stored first, so that no copy is left without one.
func (c *Copies) putLocked(ctx context.Context, n name, from Store, changed time.Time) error {
	data, err := from.Export(n.run)
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return nil
	}
	var text, sealed []byte
	if err == nil {
		text, err = json.Marshal(content{n.run, n.kind, changed, data})
	}
	if err == nil {
		sealed, err = agekey.Seal(c.own, text)
	}
	if err == nil {
		err = c.update(ctx, `INSERT INTO run_copy VALUES (?, ?, ?, ?) ON CONFLICT (run, kind)
			DO UPDATE SET node = excluded.node, changed = excluded.changed`, n.run, n.kind, c.opts.Node,
			changed.UnixNano())
	}
	if err == nil {
		err = c.opts.Objects.Put(ctx, n.object(), sealed)
	}
	if errors.Is(err, objects.ErrTooLarge) {
		c.opts.Logger.WarnContext(ctx, "files of a run are too large for a copy", slog.String(telemetry.KeyRun, n.run),
			slog.String("kind", n.kind))
		err = nil
	}
	if err != nil {
		return fmt.Errorf("copying the files of run %q: %w", n.run, err)
	}
	c.known[n], c.mine[n] = changed, true
	return nil
}

// removeLocked removes a copy. The row is removed last.
func (c *Copies) removeLocked(ctx context.Context, n name) error {
	if err := c.opts.Objects.Delete(ctx, n.object()); err != nil {
		return err
	}
	if err := c.update(ctx, "DELETE FROM run_copy WHERE run = ? AND kind = ?", n.run, n.kind); err != nil {
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
		for n, changed := range maps.Clone(c.known) {
			if n.kind != kind.Name || time.Since(changed) < kind.Keep {
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
	err := c.opts.Database.QueryRow(ctx, "SELECT run FROM run_copy WHERE run = ? AND kind = ?",
		[]any{n.run, n.kind}, &n.run)
	if errors.Is(err, sql.ErrNoRows) {
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
	c.importing.Lock()
	defer c.importing.Unlock()
	c.imported[n] = copied.Changed
	return to.Import(n.run, copied.Data, copied.Changed)
}

func (c *Copies) update(ctx context.Context, query string, args ...any) error {
	return c.opts.Database.Exec(ctx, query, args...)
}
