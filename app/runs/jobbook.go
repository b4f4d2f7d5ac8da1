package runs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// bookSchema creates the table of jobs.
const bookSchema = `
CREATE TABLE job (
	id        TEXT PRIMARY KEY,
	run_id    TEXT NOT NULL,
	principal TEXT NOT NULL,
	kind      TEXT NOT NULL,
	issuer    TEXT NOT NULL,
	session   TEXT NOT NULL,
	instance  TEXT NOT NULL,    -- the process that has it: see JobBook
	state     TEXT NOT NULL,    -- a JobState
	changed   INTEGER NOT NULL  -- when that was noted, seconds since 1970
) STRICT, WITHOUT ROWID;
CREATE INDEX job_instance ON job (instance, state);`

// bookProfiles adds the profiles of the callers of jobs.
const bookProfiles = `ALTER TABLE job ADD COLUMN profile TEXT NOT NULL DEFAULT ''`

// JobBook remembers which jobs there are, on disk, so that a restart does not forget
// that there were some. It has no code and no output. Several processes share it: each
// holds the lock INSTANCE.lock beside it for as long as it lives. nil is a book that
// remembers nothing. Its methods are safe for concurrent use.
type JobBook struct {
	db       *database.DB
	dir      string
	instance string
	held     *store.Lock
}

// OpenJobBook opens the book in dir, which it creates if needed. It marks the jobs of processes
// that have ended as lost and removes jobs that are older than keepJobs.
func OpenJobBook(ctx context.Context, dir string) (_ *JobBook, err error) {
	b := &JobBook{dir: dir, instance: telemetry.NewID("proc")}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("opening the book of jobs: %w", err), b.Close())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if b.held, err = store.CreateHeld(b.lock(b.instance), nil, 0o600); err != nil {
		return nil, err
	}
	if b.db, err = database.Open(ctx, filepath.Join(dir, "jobs.db"), bookSchema, bookProfiles); err != nil {
		return nil, err
	}
	return b, b.sweep(ctx, time.Now())
}

const lockSuffix = ".lock"

func (b *JobBook) lock(instance string) string { return filepath.Join(b.dir, instance+lockSuffix) }

// sweep removes old jobs and the locks of processes that have ended, whose unfinished jobs it marks
// as lost.
func (b *JobBook) sweep(ctx context.Context, now time.Time) error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	var dead []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), lockSuffix)
		if !ok || name == b.instance {
			continue
		}
		held, err := store.TryAcquire(b.lock(name), store.Exclusive)
		if errors.Is(err, store.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		dead = append(dead, name)
		if err := errors.Join(os.Remove(b.lock(name)), held.Release()); err != nil {
			return err
		}
	}
	return b.db.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM job WHERE changed < ?`, now.Add(-keepJobs).Unix()); err != nil {
			return err
		}
		for _, name := range dead {
			if _, err := tx.ExecContext(ctx, `UPDATE job SET changed = ? WHERE instance = ? AND state IN (?, ?)`,
				now.Unix(), name, JobQueued, JobRunning); err != nil {
				return err
			}
		}
		return nil
	})
}

// enter writes a new job into the book, before Start returns it.
func (b *JobBook) enter(ctx context.Context, made *job, runID string, now time.Time) error {
	if b == nil {
		return nil
	}
	return b.db.Exec(ctx, `INSERT INTO job VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		made.id, runID, made.owner.Principal, made.owner.Kind, made.owner.Issuer, made.owner.Session, b.instance,
		JobQueued, now.Unix(), made.owner.Profile)
}

// note writes the state of a job.
func (b *JobBook) note(ctx context.Context, id string, state JobState, now time.Time) error {
	if b == nil {
		return nil
	}
	return b.db.Exec(ctx, `UPDATE job SET state = ?, changed = ? WHERE id = ?`, state, now.Unix(), id)
}

// cross removes a job that could not be started.
func (b *JobBook) cross(ctx context.Context, id string) error {
	if b == nil {
		return nil
	}
	return b.db.Exec(ctx, `DELETE FROM job WHERE id = ?`, id)
}

// entry is a job of the book.
type entry struct {
	id, runID string
	owner     caller.Owner
	state     JobState
}

// find returns a job of a process that has ended. It returns the zero value if there is no such job
// or its last change is older than keepJobs.
func (b *JobBook) find(ctx context.Context, id string, now time.Time) (found entry, _ error) {
	if b == nil {
		return entry{}, nil
	}
	var instance string
	err := b.db.Query(ctx, func(tx database.Tx) error {
		row := tx.QueryRowContext(
			ctx, `SELECT id, run_id, principal, kind, issuer, session, profile, instance, state FROM job WHERE id = `+
				`? AND changed >= ?`,
			id, now.Add(-keepJobs).Unix())
		return row.Scan(&found.id, &found.runID, &found.owner.Principal, &found.owner.Kind, &found.owner.Issuer,
			&found.owner.Session, &found.owner.Profile, &instance, &found.state)
	})
	if errors.Is(err, sql.ErrNoRows) || err == nil && (instance == b.instance || store.IsHeld(b.lock(instance))) {
		return entry{}, nil
	}
	return found, err
}

// Close closes the book. It may be called twice.
func (b *JobBook) Close() error {
	if b == nil {
		return nil
	}
	var errs []error
	if b.db != nil {
		errs = append(errs, b.db.Close())
	}
	if b.held != nil {
		errs = append(errs, os.Remove(b.lock(b.instance)), b.held.Release())
		b.held = nil
	}
	return errors.Join(errs...)
}
