package clusterlog

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// SchemaCopies adds the copies of the logs.
const SchemaCopies = `
-- The full files of logs that are in the object store.
CREATE TABLE audit_file (
	origin TEXT NOT NULL,
	first  INTEGER NOT NULL, -- the number of its first record
	ended  INTEGER NOT NULL, -- the time of its last record, in seconds since 1970
	PRIMARY KEY (origin, first)
) STRICT;
-- The other files, if records are replicated before an act.
CREATE TABLE audit_tail (
	origin TEXT NOT NULL,
	first  INTEGER NOT NULL, -- of the file
	start  INTEGER NOT NULL, -- the offset of the bytes in the file
	stored INTEGER NOT NULL, -- in seconds since 1970
	sealed BLOB NOT NULL,    -- the bytes, encrypted with the key of the cluster
	PRIMARY KEY (origin, first, start)
) STRICT;`

const (
	// maxUnshipped is the number of full files that may wait for the object store before calls stop.
	maxUnshipped = 256
	// shipInterval is the time between two attempts.
	shipInterval = 5 * time.Second
	// lastAttempt is how long Close waits for full files to be copied.
	lastAttempt = 5 * time.Second
	// expiryInterval is how often copies are looked for that are older than Copies.Keep.
	expiryInterval = time.Hour
	// removalsName is the name of the copy of the summaries of removed records.
	removalsName = "removals"
)

// Copies configure the copies of a log. Dir and Objects are required.
type Copies struct {
	Dir     string // the directory of the log
	Objects *objects.Store
	// Keep is how long copies are kept after their last record was written; 0 keeps all. It applies to the copies of
	// all logs of the cluster, because nobody else removes those of a node that was lost.
	Keep time.Duration
	// Tail stores the records that are not in a full file in the database, with each checkpoint.
	Tail bool
}

// shipper copies the full files of a log to the object store, in the background: a call never waits for it.
type shipper struct {
	db   *database.DB
	opts Options
	stop context.CancelFunc
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards all below
	origin  string     // of the log; empty until the first checkpoint
	waiting int        // full files that are not in the object store
	failure error      // of the last attempt
}

// shipped is how far the copies go. It belongs to the goroutine of the shipper.
type shipped struct {
	known    bool   // last was read from the database
	last     uint64 // the first record of the newest file in the object store; 0: none
	removals []byte // the summaries that are in the object store
	expired  time.Time
}

func newShipper(db *database.DB, opts Options) *shipper {
	ctx, stop := context.WithCancel(context.Background())
	s := &shipper{db: db, opts: opts, stop: stop, done: make(chan struct{})}
	go s.run(ctx)
	return s
}

func (s *shipper) run(ctx context.Context) {
	defer close(s.done)
	var state shipped
	ticker := time.NewTicker(shipInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			s.attempt(ctx, &state)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAttempt)
	defer cancel()
	s.attempt(last, &state)
}

func (s *shipper) close() {
	s.stop()
	<-s.done
}

// look has the shipper look for full files of the log from now on. It returns an error if too many of them wait.
func (s *shipper) look(origin string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin = origin
	if s.failure != nil && s.waiting > maxUnshipped {
		return fmt.Errorf("%d full files of the audit log wait for the object store: %w", s.waiting, s.failure)
	}
	return nil
}

// attempt copies all full files, and keeps the result. A failure is logged once.
func (s *shipper) attempt(ctx context.Context, state *shipped) {
	s.mu.Lock()
	origin, before := s.origin, s.failure
	s.mu.Unlock()
	if origin == "" {
		return
	}
	waiting, err := s.ship(ctx, origin, state)
	switch {
	case err != nil && before == nil:
		s.opts.Logger.WarnContext(ctx, "copies of the audit log wait for the object store",
			slog.Any(telemetry.KeyError, err))
	case err == nil && before != nil:
		s.opts.Logger.InfoContext(ctx, "the audit log is copied again")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting, s.failure = waiting, err
}

// ship copies all that is not in the object store, and removes old copies. waiting is the number of files that remain.
func (s *shipper) ship(ctx context.Context, origin string, state *shipped) (waiting int, err error) {
	if !state.known {
		err := s.db.QueryRow(ctx, "SELECT coalesce(max(first), 0) FROM audit_file WHERE origin = ?",
			[]any{origin}, &state.last)
		if err != nil {
			return 0, err
		}
		state.known = true
	}
	list, err := audit.ReadPiece(s.opts.Copies.Dir, 0, 0)
	if err != nil {
		return 0, err
	}
	full := slices.DeleteFunc(list.Files[:max(0, len(list.Files)-1)], func(first uint64) bool {
		return first <= state.last
	})
	for i, first := range full {
		if err := s.file(ctx, origin, first); err != nil {
			return len(full) - i, err
		}
		state.last = first
	}
	// With a new file they are stored again: another node may have removed them after a long time without files.
	if len(full) > 0 && len(list.Removals) > 0 || !bytes.Equal(list.Removals, state.removals) {
		if err := s.put(ctx, objectOf(origin, removalsName), list.Removals); err != nil {
			return 0, err
		}
		state.removals = list.Removals
	}
	if keep := s.opts.Copies.Keep; keep > 0 && time.Since(state.expired) > expiryInterval {
		if err := s.expire(ctx, origin, int64(keep/time.Second)); err != nil {
			return 0, err
		}
		state.expired = time.Now()
	}
	return 0, nil
}

func objectOf(origin, name string) string { return path.Join("audit", path.Base(origin), name) }

func fileName(first uint64) string { return fmt.Sprintf("%012d", first) }

// put compresses, encrypts and stores an object.
func (s *shipper) put(ctx context.Context, name string, content []byte) error {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	sealed, err := agekey.Seal(s.opts.Key.Recipient(), w.EncodeAll(content, nil))
	if err != nil {
		return err
	}
	return s.opts.Copies.Objects.Put(ctx, name, sealed)
}

// maxUnpacked is the maximum number of bytes of an object after it was decompressed.
const maxUnpacked = 256 << 20

// get is the inverse of put.
func get(ctx context.Context, store *objects.Store, key Key, name string) ([]byte, error) {
	sealed, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	packed, err := agekey.Open(sealed, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := r.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return content, nil
}

// file copies a full file. Afterwards the database need not keep its bytes.
func (s *shipper) file(ctx context.Context, origin string, first uint64) error {
	var content []byte
	for {
		p, err := audit.ReadPiece(s.opts.Copies.Dir, first, int64(len(content)))
		if err != nil {
			return err
		}
		content = append(content, p.Data...)
		if p.Last() {
			break
		}
	}
	lines := bytes.TrimRight(content, "\n")
	var last struct {
		Time time.Time `json:"time"`
	}
	if err := strictjson.UnmarshalOpen(lines[bytes.LastIndexByte(lines, '\n')+1:], &last); err != nil {
		return fmt.Errorf("the last record of the file that begins with record %d: %w", first, err)
	}
	if err := s.put(ctx, objectOf(origin, fileName(first)), content); err != nil {
		return err
	}
	runs := runsOf(content)
	return s.db.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO audit_file VALUES (?, ?, ?, ?)
			ON CONFLICT (origin, first) DO UPDATE SET ended = excluded.ended, runs = excluded.runs`, origin, first,
			last.Time.Unix(), runs); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM audit_tail WHERE origin = ? AND first <= ?", origin, first)
		return err
	})
}

// expire removes copies whose records are all older than a number of seconds. Of the log of another node, it removes
// all copies or none: that node removes the older ones while it lives, and the rest of a log cannot be verified without
// the summary that it signs.
func (s *shipper) expire(ctx context.Context, origin string, keep int64) error {
	err := s.db.Exec(ctx, "DELETE FROM audit_tail WHERE origin IN "+
		"(SELECT origin FROM audit_tail GROUP BY origin HAVING max(stored) < unixepoch() - ?)", keep)
	if err != nil {
		return err
	}
	var old []copied
	err = s.db.View(ctx, func(tx database.Tx) (err error) {
		old, err = readFiles(ctx, tx, "ended < unixepoch() - ? AND (origin = ? OR origin NOT IN "+
			"(SELECT origin FROM audit_tail UNION SELECT origin FROM audit_file WHERE ended >= unixepoch() - ?))",
			keep, origin, keep)
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range old {
		if err := s.opts.Copies.Objects.Delete(ctx, objectOf(one.origin, fileName(one.first))); err != nil {
			return err
		}
		err := s.db.Exec(ctx, "DELETE FROM audit_file WHERE origin = ? AND first = ?", one.origin, one.first)
		if err != nil {
			return err
		}
	}
	return s.removeSummaries(ctx, origin)
}

// removeSummaries removes the summaries of removed records of other logs that have no copies.
func (s *shipper) removeSummaries(ctx context.Context, origin string) error {
	all, err := database.Rows(ctx, s.db, "SELECT origin FROM audit_log WHERE origin <> ? AND origin NOT IN "+
		"(SELECT origin FROM audit_tail UNION SELECT origin FROM audit_file)", []any{origin}, database.Column[string])
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := s.opts.Copies.Objects.Delete(ctx, objectOf(one, removalsName)); err != nil {
			return err
		}
	}
	return nil
}

// copied is a full file in the object store.
type copied struct {
	origin string
	first  uint64
}

func readFiles(ctx context.Context, tx database.Tx, where string, values ...any) (list []copied, err error) {
	var one copied
	err = database.ScanRows(ctx, tx, "SELECT origin, first FROM audit_file WHERE "+where+" ORDER BY origin, first",
		values, []any{&one.origin, &one.first}, func() error {
			list = append(list, one)
			return nil
		})
	return list, err
}
