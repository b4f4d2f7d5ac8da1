package clusterlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// SchemaRuns adds the runs of each file in the object store. Files that an earlier version has copied have none.
const SchemaRuns = `
ALTER TABLE audit_file ADD COLUMN runs BLOB; -- see runsOf`

// The limits of reading the records of one run.
const (
	maxRunFiles = 128      // in the object store
	maxRunBytes = 16 << 20 // of the records
	tailRows    = 32       // that are read from the database at a time
)

// ErrTooLong is returned by CopiedRun for a run with too many records.
var ErrTooLong = errors.New("it has too many records to be read from the copies: " +
	"airlock audit export --cluster has all of them")

// RunCopy is what the copies of the logs of a node have of a run.
type RunCopy struct {
	Node    string
	Records []audit.Record // those of each log in their order
	Until   time.Time      // a time after which no copied record of the node was written; zero: the node has no copies
}

// CopiedRun returns the records of a run in the copies of the logs of nodes. It reads the files that have such records,
// and the records that are in the database.
func CopiedRun(ctx context.Context, db *database.DB, key Key, store *objects.Store, run string, nodes []string) (
	all []RunCopy, err error) {
	r := runReader{db: db, key: key, objects: store, run: run, known: map[string]bool{}}
	for _, node := range nodes {
		one := RunCopy{Node: node}
		if one.Until, err = r.read(ctx, node); err != nil {
			return nil, fmt.Errorf("the copies of the records of run %q at node %q: %w", run, node, err)
		}
		one.Records, r.records = r.records, nil
		all = append(all, one)
	}
	return all, nil
}

type runReader struct {
	db      *database.DB
	key     Key
	objects *objects.Store
	run     string

	known   map[string]bool // the hashes of all records that were read
	records []audit.Record  // of one node
	size    int             // of all records, in bytes
}

const ofNode = "origin IN (SELECT origin FROM audit_log WHERE node = ?1)"

// read reads the copies of the logs of a node. A file is copied before the database removes its records, so the
// database is read first.
func (r *runReader) read(ctx context.Context, node string) (until time.Time, err error) {
	var origins []string
	var newest int64
	err = r.db.View(ctx, func(tx database.Tx) (err error) {
		if origins, err = database.RowsIn(ctx, tx, "SELECT origin FROM audit_log WHERE node = ?", []any{node},
			database.Column[string]); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT coalesce(max(at), 0) FROM (SELECT ended AS at FROM audit_file WHERE "+
			ofNode+" UNION ALL SELECT stored FROM audit_tail WHERE "+ofNode+") AS copied", node).Scan(&newest)
	})
	if err != nil || newest == 0 {
		return time.Time{}, err
	}
	for _, origin := range origins {
		if err := r.tails(ctx, origin); err != nil {
			return time.Time{}, err
		}
	}
	return time.Unix(newest, 0), r.files(ctx, node)
}

// tails reads the records of a log that are in the database.
func (r *runReader) tails(ctx context.Context, origin string) error {
	last := unsent{offset: -1}
	for {
		var rows []unsent
		err := r.db.View(ctx, func(tx database.Tx) (err error) {
			rows, err = readTails(ctx, tx, r.key, origin, "AND (first, start) > (?, ?) ORDER BY first, start LIMIT ?",
				last.first, last.offset, tailRows)
			return err
		})
		if err != nil {
			return err
		}
		for _, last = range rows {
			if err := r.add(last.data); err != nil {
				return err
			}
		}
		if len(rows) < tailRows {
			return nil
		}
	}
}

// files reads the files in the object store that have records of the run.
func (r *runReader) files(ctx context.Context, node string) error {
	var files []copied
	hash := runHash([]byte(r.run))
	err := r.db.View(ctx, func(tx database.Tx) (err error) {
		files, err = readFiles(ctx, tx, ofNode+" AND instr(runs, ?2) > 0", node, hash[:])
		return err
	})
	if err == nil && len(files) > maxRunFiles {
		err = ErrTooLong
	}
	if err != nil {
		return err
	}
	for _, one := range files {
		content, err := get(ctx, r.objects, r.key, objectOf(one.origin, fileName(one.first)))
		if errors.Is(err, fs.ErrNotExist) { // it is too old, and was removed meanwhile
			continue
		}
		if err == nil {
			err = r.add(content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds the records of the run in whole lines of a log. A record can be in the database and in a file.
func (r *runReader) add(lines []byte) error {
	err := audit.RecordsOf(lines, r.run, func(one audit.Record, size int) error {
		if r.known[one.Hash] {
			return nil
		}
		if r.size += size; r.size > maxRunBytes {
			return ErrTooLong
		}
		r.known[one.Hash] = true
		r.records = append(r.records, one)
		return nil
	})
	if err != nil && !errors.Is(err, ErrTooLong) {
		err = fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}

// runsOf returns the hashes of the runs that have records in lines of a log, one after the other.
func runsOf(lines []byte) []byte {
	const member = `"run_id":"`
	known := map[[4]byte]bool{}
	all := []byte{}
	for line := range bytes.Lines(lines) {
		at := bytes.LastIndex(line, []byte(member)) // the arguments of a call precede that of the record
		if at < 0 {
			continue
		}
		run, _, _ := bytes.Cut(line[at+len(member):], []byte(`"`))
		if hash := runHash(run); !known[hash] {
			known[hash] = true
			all = append(all, hash[:]...)
		}
	}
	return all
}

// runHash returns a hash of the ID of a run. If two runs have the same, a file is read in vain.
func runHash(run []byte) [4]byte {
	sum := sha256.Sum256(run)
	return [4]byte(sum[:])
}
