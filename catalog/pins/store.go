package pins

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Schema makes the tables of a Store.
const Schema = `
CREATE TABLE pin_set (
	scope      TEXT PRIMARY KEY, -- whose servers: a hash of a configuration file, or empty in a cluster
	generation INTEGER NOT NULL  -- increases with each change
) STRICT;
CREATE TABLE pin (
	scope  TEXT NOT NULL REFERENCES pin_set,
	server TEXT NOT NULL,
	tools  BLOB NOT NULL, -- JSON, see serverPins
	PRIMARY KEY (scope, server)
) STRICT;`

// ErrChangedMeanwhile is returned if a definition is accepted against a pin that was
// replaced in the meantime: the person has seen an outdated difference.
var ErrChangedMeanwhile = errors.New("the pin has changed meanwhile")

// Store is a book of pins in the state database, which processes of several machines may share. Its methods may be
// called concurrently.
type Store struct {
	open          func(context.Context) (*database.DB, error)
	scope, former string
}

// NewStore returns the book of a scope in the database that open returns. former is the path of the file in which a
// former version kept the book, which is imported.
func NewStore(open func(context.Context) (*database.DB, error), scope, former string) *Store {
	return &Store{open, scope, former}
}

// Check is Book.Check on the stored book. If the book does not fit its digests, the result is an error: to begin anew
// would accept every change that was made.
func (s *Store) Check(ctx context.Context, servers []catalog.Server, now time.Time) (Report, error) {
	var report Report
	generation, err := s.edit(ctx, func(book *Book) (bool, error) {
		report = book.Check(servers, now)
		return len(report.New)+len(report.Released) > 0, nil
	})
	report.Generation = generation
	return report, err
}

// Quarantine is Book.Quarantine on the stored book.
func (s *Store) Quarantine(ctx context.Context, serverID string) error {
	_, err := s.edit(ctx, func(book *Book) (bool, error) {
		book.Quarantine(serverID)
		return true, nil
	})
	return err
}

// MarkFound is Book.MarkFound on the stored book. It returns the generation of the book.
func (s *Store) MarkFound(ctx context.Context, changes []Change) (generation int64, err error) {
	return s.edit(ctx, func(book *Book) (bool, error) {
		book.MarkFound(changes)
		return len(changes) > 0, nil
	})
}

// MarkShown is Book.MarkShown on the stored book.
func (s *Store) MarkShown(ctx context.Context, changes []Change) error {
	_, err := s.edit(ctx, func(book *Book) (bool, error) {
		book.MarkShown(changes)
		return len(changes) > 0, nil
	})
	return err
}

// Accept is Book.Accept on the stored book; ErrChangedMeanwhile takes the place of false.
func (s *Store) Accept(ctx context.Context, changes []Change, now time.Time) error {
	_, err := s.edit(ctx, func(book *Book) (bool, error) {
		if !book.Accept(changes, now) {
			return false, ErrChangedMeanwhile
		}
		return true, nil
	})
	return err
}

// Generation returns a number that increases when any process changes the book.
func (s *Store) Generation(ctx context.Context) (generation int64, err error) {
	db, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	err = db.Query(ctx, func(tx database.Tx) error {
		generation, err = s.generation(ctx, tx)
		return err
	})
	return generation, err
}

// generation returns 0 for a book that is not stored yet.
func (s *Store) generation(ctx context.Context, tx database.Tx) (generation int64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT generation FROM pin_set WHERE scope = ?", s.scope).Scan(&generation)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return generation, err
}

// serverPins is what is stored of one server.
type serverPins struct {
	Tools map[string]Pin `json:"tools,omitempty"`
	// Quarantined is nil if the server is not in quarantine, see Book.Quarantined.
	Quarantined map[string]string `json:"quarantined,omitzero"`
}

// edit calls change with the book in a transaction, and stores the book if change returns true. It returns the
// generation of the book. change may be called again.
func (s *Store) edit(ctx context.Context, change func(*Book) (write bool, err error)) (generation int64, err error) {
	db, err := s.open(ctx)
	if err != nil {
		return 0, fmt.Errorf("opening the pins: %w", err)
	}
	var imports bool
	err = db.Update(ctx, func(tx database.Tx) (err error) {
		if generation, err = s.generation(ctx, tx); err != nil {
			return err
		}
		book, stored, err := s.read(ctx, tx)
		if imports = err == nil && generation == 0; imports {
			book, imports, err = s.readFile()
		}
		if err != nil {
			return err
		}
		write, err := change(book)
		if err != nil || !write && !imports {
			return err
		}
		generation++
		return s.write(ctx, tx, book, stored, generation)
	})
	if err != nil {
		return 0, fmt.Errorf("the pins of the servers' tools: %w", err)
	}
	if imports {
		err = os.Rename(s.former, s.former+".imported")
	}
	return generation, err
}

// read returns the book and the stored text of each server.
func (s *Store) read(ctx context.Context, tx database.Tx) (*Book, map[string][]byte, error) {
	book, stored := &Book{}, map[string][]byte{}
	err := database.EachRow(ctx, tx, "SELECT server, tools FROM pin WHERE scope = ?", []any{s.scope},
		func(rows *sql.Rows) error {
			var id string
			var text []byte
			if err := rows.Scan(&id, &text); err != nil {
				return err
			}
			var one serverPins
			if err := strictjson.UnmarshalOpen(text, &one); err != nil {
				return fmt.Errorf("those of the server %q are damaged: %w", id, err)
			}
			stored[id] = text
			book.put(id, one)
			return nil
		})
	if err != nil {
		return nil, nil, err
	}
	return book, stored, book.check()
}

// put adds the pins of a server.
func (b *Book) put(serverID string, pins serverPins) {
	for name, pin := range pins.Tools {
		b.set(serverID, name, pin)
	}
	if pins.Quarantined != nil {
		b.Quarantine(serverID)
		maps.Copy(b.Quarantined[serverID], pins.Quarantined)
	}
}

// write stores what differs from what is stored.
func (s *Store) write(ctx context.Context, tx database.Tx, book *Book, stored map[string][]byte,
	generation int64) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO pin_set VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET "+
		"generation = excluded.generation", s.scope, generation); err != nil {
		return err
	}
	all := map[string]serverPins{}
	for id, tools := range book.Servers {
		all[id] = serverPins{Tools: tools}
	}
	for id, shown := range book.Quarantined {
		all[id] = serverPins{book.Servers[id], shown}
	}
	for id := range stored {
		if _, remains := all[id]; !remains {
			_, err := tx.ExecContext(ctx, "DELETE FROM pin WHERE scope = ? AND server = ?", s.scope, id)
			if err != nil {
				return err
			}
		}
	}
	for id, one := range all {
		text, err := canon.Verbatim(one)
		if err != nil {
			return err
		}
		text = append(text, '\n')
		if bytes.Equal(text, stored[id]) {
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO pin VALUES (?, ?, ?) ON CONFLICT (scope, server) DO UPDATE SET "+
			"tools = excluded.tools", s.scope, id, text); err != nil {
			return err
		}
	}
	return nil
}

// readFile returns the book that a former version kept in a file, and whether there is one.
func (s *Store) readFile() (_ *Book, found bool, err error) {
	raw, err := store.ReadFile(s.former)
	if errors.Is(err, fs.ErrNotExist) {
		return &Book{}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	var book Book
	if err := strictjson.UnmarshalOpen(raw, &book); err != nil {
		return nil, false, fmt.Errorf("the file %q is damaged: %w", s.former, err)
	}
	if err := book.check(); err != nil {
		return nil, false, fmt.Errorf("the file %q: %w", s.former, err)
	}
	return &book, true, nil
}
