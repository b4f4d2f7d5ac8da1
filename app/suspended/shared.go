package suspended

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Schema makes the tables of the suspended runs of a cluster. Contents are encrypted with the key of the cluster.
const Schema = `
CREATE TABLE suspended_run (
	run       TEXT PRIMARY KEY,
	node      TEXT NOT NULL,    -- the name of the node that has the run
	node_id   TEXT NOT NULL,    -- the process that has it: a name with an epoch
	owner     TEXT NOT NULL,    -- the account of the caller
	image     TEXT NOT NULL,    -- of its sandbox
	format    TEXT NOT NULL,    -- of its state: the version of gVisor
	number    INTEGER NOT NULL, -- how often it was suspended
	continued INTEGER NOT NULL, -- 1: it went on, and no other process can continue it
	changed   INTEGER NOT NULL, -- seconds since 1970
	content   BLOB NOT NULL
) STRICT;
CREATE INDEX suspended_run_node ON suspended_run (node, node_id);
-- The parts of the files that runs need: their states, and what these are differences to.
CREATE TABLE suspended_file (
	name    TEXT NOT NULL,
	part    INTEGER NOT NULL,
	parts   INTEGER NOT NULL,
	stored  INTEGER NOT NULL, -- seconds since 1970
	content BLOB NOT NULL,
	PRIMARY KEY (name, part)
) STRICT;
CREATE TABLE suspended_use (
	run  TEXT NOT NULL,
	name TEXT NOT NULL, -- of a file
	PRIMARY KEY (run, name)
) STRICT;
CREATE INDEX suspended_use_name ON suspended_use (name);`

const (
	// partSize is how many bytes of a file one transaction stores: a larger one could exceed its time.
	partSize = 4 << 20
	// unusedAfter is after how many seconds a file that no run uses is removed: its process has ended before it stored
	// the run.
	unusedAfter = 60 * 60
	// forgottenAfter is after how many seconds the runs of nodes that do not exist any more are removed. No question is
	// open for so long.
	forgottenAfter = 90 * 24 * 60 * 60
	// attempts is how often a run is stored again because another one has removed a file that both use.
	attempts = 5
)

// ErrTaken is returned for a run that another node has taken: this node had no lease for a while.
var ErrTaken = errors.New("another node of the cluster has taken the run")

var errMissing = errors.New("a file of the suspended run is not stored")

// Shared keeps the suspended runs of all nodes of a cluster in their database. Its methods are safe for concurrent use
// by different runs. One process has each run: it is the only one that changes it, while it has a lease.
type Shared struct {
	db   *database.DB // its updates check the lease
	node *cluster.Node

	storing sync.Mutex // held while a file is stored, so that runs with the same one store it once
}

// OpenShared returns the suspended runs of the cluster of a node, and removes what no run needs.
func OpenShared(ctx context.Context, db *database.DB, node *cluster.Node) (*Shared, error) {
	s := &Shared{db: db, node: node}
	err := s.db.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM suspended_run WHERE changed < unixepoch() - ? AND `+gone,
			forgottenAfter); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx,
			`DELETE FROM suspended_use WHERE run NOT IN (SELECT run FROM suspended_run)`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM suspended_file WHERE stored < unixepoch() - ? AND name NOT IN
			(SELECT name FROM suspended_use)`, unusedAfter)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the suspended runs: %w", err)
	}
	return s, nil
}

// gone is the condition in SQL that no process with the name of a run's node may act.
const gone = "NOT EXISTS (SELECT 1 FROM node WHERE node.name = suspended_run.node AND " + cluster.Live + ")"

// Put stores a run durably, in place of what was stored of it. The content must have a JSON form. The error is ErrTaken
// if another node has the run.
func (s *Shared) Put(run string, content any, about About) (err error) {
	ctx := context.Background()
	text, err := json.Marshal(content)
	for n := 0; err == nil; n++ {
		err = s.db.Update(ctx, func(tx database.Tx) error { return s.put(ctx, tx, run, text, about) })
		if n == attempts || !errors.Is(err, errMissing) {
			break
		}
		err = nil
		for _, file := range about.Files {
			err = errors.Join(err, s.upload(ctx, file))
		}
	}
	if err != nil {
		return fmt.Errorf("storing the suspended run %q: %w", run, err)
	}
	return nil
}

func (s *Shared) put(ctx context.Context, tx database.Tx, run string, text []byte, about About) error {
	for _, file := range about.Files {
		if complete, err := isComplete(ctx, tx, file.Name); err != nil || !complete {
			return cmp.Or(err, errMissing)
		}
	}
	continued := 0
	if about.Continued {
		continued = 1
	}
	stored, err := database.Changed(ctx, tx, `INSERT INTO suspended_run VALUES (?, ?, ?, ?, ?, ?, ?, ?, unixepoch(), ?)
		ON CONFLICT (run) DO UPDATE SET number = excluded.number, continued = excluded.continued,
		changed = excluded.changed, content = excluded.content WHERE suspended_run.node_id = excluded.node_id`,
		run, s.node.Name(), s.node.ID(), about.Owner, about.Image, about.Format, about.Number, continued,
		s.node.Seal(text, about.text(run)))
	if err != nil || !stored {
		return cmp.Or(err, ErrTaken)
	}
	return replaceUses(ctx, tx, run, about.Files)
}

// replaceUses notes which files a run needs, and removes those that no run needs any more.
func replaceUses(ctx context.Context, tx database.Tx, run string, files []File) error {
	former, err := database.RowsIn(ctx, tx, "SELECT name FROM suspended_use WHERE run = ?", []any{run},
		database.Column[string])
	if err != nil {
		return err
	}
	for _, file := range files {
		if i := slices.Index(former, file.Name); i >= 0 {
			former = slices.Delete(former, i, i+1)
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO suspended_use VALUES (?, ?)", run, file.Name); err != nil {
			return err
		}
	}
	for _, name := range former {
		_, err := tx.ExecContext(ctx, "DELETE FROM suspended_use WHERE run = ? AND name = ?", run, name)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM suspended_file WHERE name = ? AND NOT EXISTS
			(SELECT 1 FROM suspended_use WHERE suspended_use.name = suspended_file.name)`, name); err != nil {
			return err
		}
	}
	return nil
}

func isComplete(ctx context.Context, tx database.Tx, name string) (complete bool, err error) {
	err = tx.QueryRowContext(ctx, "SELECT count(*) > 0 AND count(*) = max(parts) FROM suspended_file WHERE name = ?",
		name).Scan(&complete)
	return complete, err
}

// upload stores a file, unless it is stored.
func (s *Shared) upload(ctx context.Context, file File) error {
	s.storing.Lock()
	defer s.storing.Unlock()
	complete := false
	if err := s.db.View(ctx, func(tx database.Tx) (err error) {
		complete, err = isComplete(ctx, tx, file.Name)
		return err
	}); err != nil || complete {
		return err
	}
	content, err := file.Read()
	if err != nil {
		return err
	}
	parts := slices.Collect(slices.Chunk(content, partSize))
	if len(parts) == 0 {
		parts = [][]byte{nil}
	}
	for i, part := range parts {
		sealed := s.node.Seal(part, partText(file.Name, i, len(parts)))
		if err := s.db.Exec(ctx, "INSERT INTO suspended_file VALUES (?, ?, ?, unixepoch(), ?) "+
			"ON CONFLICT (name, part) DO UPDATE SET parts = excluded.parts, stored = excluded.stored, "+
			"content = excluded.content",
			file.Name, i, len(parts), sealed); err != nil {
			return err
		}
	}
	return nil
}

func partText(name string, part, parts int) string {
	return fmt.Sprintf("file %s %d/%d", name, part, parts)
}

// Fetch returns a file of a run of this node. The error is ErrDamaged if it is not what Put has stored.
func (s *Shared) Fetch(name string) ([]byte, error) {
	ctx := context.Background()
	var content []byte
	for part, parts := 0, 1; part < parts; part++ {
		var sealed []byte
		err := s.db.QueryRow(ctx, "SELECT parts, content FROM suspended_file WHERE name = ? AND part = ?",
			[]any{name, part}, &parts, &sealed)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, ErrDamaged
		}
		if err != nil {
			return nil, fmt.Errorf("reading a file of a suspended run: %w", err)
		}
		plain, err := s.node.Open(sealed, partText(name, part, parts))
		if err != nil {
			return nil, ErrDamaged
		}
		content = append(content, plain...)
	}
	return content, nil
}

// Remove removes a run of this node and the files that only it needs. A run that is not stored is not an error.
func (s *Shared) Remove(run string) error {
	ctx := context.Background()
	return s.db.Update(ctx, func(tx database.Tx) error {
		removed, err := database.Changed(ctx, tx, "DELETE FROM suspended_run WHERE run = ? AND node_id = ?", run,
			s.node.ID())
		if err != nil || !removed {
			return err
		}
		return replaceUses(ctx, tx, run, nil)
	})
}

// List returns the IDs of the runs that the processes of this node before this one have left, and takes them.
func (s *Shared) List() (runs []string, err error) {
	ctx := context.Background()
	err = s.db.Update(ctx, func(tx database.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE suspended_run SET node_id = ? WHERE node = ?", s.node.ID(),
			s.node.Name()); err != nil {
			return err
		}
		runs, err = database.RowsIn(ctx, tx, "SELECT run FROM suspended_run WHERE node_id = ? ORDER BY run",
			[]any{s.node.ID()}, database.Column[string])
		return err
	})
	return runs, err
}

// Claim takes suspended runs of nodes that have ended, died, or had no lease for so long that they may not act. The
// runs have one of the images and a format, so that this node can continue them. It takes a number of them at most, so
// that other nodes can take some as well.
func (s *Shared) Claim(ctx context.Context, images []string, format string, most int) (taken []string, err error) {
	if len(images) == 0 {
		return nil, nil
	}
	where := "continued = 0 AND format = ? AND image IN (?" + strings.Repeat(", ?", len(images)-1) + ") AND " + gone
	args := []any{format}
	for _, image := range images {
		args = append(args, image)
	}
	found := false // most calls find none, and only read
	if err := s.db.QueryRow(ctx, "SELECT count(*) > 0 FROM suspended_run WHERE "+where, args,
		&found); err != nil || !found {
		return nil, err
	}
	err = s.db.Update(ctx, func(tx database.Tx) error {
		former, err := database.RowsIn(ctx, tx, "SELECT run || ' ' || node_id FROM suspended_run WHERE "+where+
			" ORDER BY changed, run LIMIT ?", append(args, most), database.Column[string])
		if err != nil {
			return err
		}
		taken = nil
		for _, one := range former {
			run, id, _ := strings.Cut(one, " ")
			if _, err := tx.ExecContext(ctx, "UPDATE suspended_run SET node = ?, node_id = ? WHERE run = ?",
				s.node.Name(), s.node.ID(), run); err != nil {
				return err
			}
			if err := s.node.Take(ctx, tx, run, id); err != nil {
				return err
			}
			taken = append(taken, run)
		}
		return nil
	})
	return taken, err
}

// Taken returns the runs that other nodes have taken from this process.
func (s *Shared) Taken(ctx context.Context) ([]string, error) { return s.node.Taken(ctx) }

// Get reads a run of this node into content. The error is ErrDamaged if it is not what Put has stored.
func (s *Shared) Get(run string, content any) error {
	ctx := context.Background()
	var about About
	var sealed []byte
	err := s.db.QueryRow(ctx, `SELECT owner, image, format, number, continued = 1, content FROM suspended_run
		WHERE run = ? AND node_id = ?`,
		[]any{run, s.node.ID()}, &about.Owner, &about.Image, &about.Format, &about.Number, &about.Continued, &sealed)
	if err != nil {
		return fmt.Errorf("reading the suspended run %q: %w", run, err)
	}
	text, err := s.node.Open(sealed, about.text(run))
	if err != nil || strictjson.UnmarshalOpen(text, content) != nil {
		return ErrDamaged
	}
	return nil
}
