package clusterlog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/agekey"
	"github.com/airlock-mcp/airlock/internal/database"
)

// tail is the end of the bytes of a log that are in the database, if records are replicated.
type tail struct {
	known  bool   // the fields below were read from the database
	first  uint64 // the first record of the file; 0: the database has no bytes of the log
	offset int64  // in the file
	size   uint64 // the number of records up to there; 0: unknown
}

// unsent are bytes of a file that are not in the database.
type unsent struct {
	first  uint64
	offset int64
	data   []byte // whole lines
}

// records returns the number of records.
func (u unsent) records() uint64 { return uint64(bytes.Count(u.data, []byte("\n"))) }

// advance moves the end behind bytes that were stored.
func (t *tail) advance(all []unsent) {
	for _, one := range all {
		if one.offset == 0 {
			t.size = one.first - 1
		}
		t.first, t.offset = one.first, one.offset+int64(len(one.data))
		if one.offset == 0 || t.size > 0 {
			t.size += one.records()
		}
	}
}

// unsent returns the lines of a log of so many records behind those in the database.
func (l *Log) unsent(ctx context.Context, origin string, size uint64) ([]unsent, error) {
	if !l.tail.known {
		if err := l.db.View(ctx, func(tx database.Tx) error { return l.readTail(ctx, tx, origin) }); err != nil {
			return nil, err
		}
	}
	if l.tail.size > 0 { // mostly the log still has the same file, and the list of files need not be read
		all, err := l.lines(l.tail.first, l.tail.offset)
		known := l.tail
		known.advance(all)
		if err != nil || known.size >= size {
			return all, err
		}
	}
	list, err := audit.ReadPiece(l.opts.Copies.Dir, 0, 0)
	if err != nil {
		return nil, err
	}
	files := list.Files
	if n := len(files); l.tail.first == 0 && n > 1 {
		files = files[n-1:] // the full ones are copied to the object store
	}
	var all []unsent
	for _, first := range files {
		offset := int64(0)
		switch {
		case first < l.tail.first:
			continue
		case first == l.tail.first:
			offset = l.tail.offset
		}
		lines, err := l.lines(first, offset)
		if err != nil {
			return nil, err
		}
		all = append(all, lines...)
	}
	return all, nil
}

// lines returns the whole lines of a file of the log from an offset on.
func (l *Log) lines(first uint64, offset int64) (all []unsent, err error) {
	for {
		p, err := audit.ReadPiece(l.opts.Copies.Dir, first, offset)
		if err != nil {
			return nil, err
		}
		whole := p.Data[:bytes.LastIndexByte(p.Data, '\n')+1]
		if len(whole) > 0 {
			all = append(all, unsent{first, offset, whole})
			offset += int64(len(whole))
		}
		if p.Last() || len(whole) == 0 {
			return all, nil
		}
	}
}

// readTail reads where the bytes in the database end.
func (l *Log) readTail(ctx context.Context, tx database.Tx, origin string) error {
	newest, err := readTails(ctx, tx, l.opts.Key, origin, "ORDER BY first DESC, start DESC LIMIT 1")
	if err != nil {
		return err
	}
	l.tail = tail{known: true}
	l.tail.advance(newest)
	return nil
}

// store stores bytes of the log. It returns an error if the database has bytes from one of the offsets on.
func (l *Log) store(ctx context.Context, tx database.Tx, origin string, all []unsent) error {
	for _, one := range all {
		sealed, err := agekey.Seal(l.opts.Key.Recipient(), one.data)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO audit_tail VALUES (?, ?, ?, unixepoch(), ?)", origin, one.first,
			one.offset, sealed); err != nil {
			return err
		}
	}
	return nil
}

// readTails returns bytes of a log in the database. which is SQL that selects and orders the rows.
func readTails(ctx context.Context, tx database.Tx, key Key, origin, which string, values ...any) (all []unsent,
	err error) {
	var one unsent
	var sealed []byte
	err = database.ScanRows(ctx, tx, "SELECT first, start, sealed FROM audit_tail WHERE origin = ? "+which,
		append([]any{origin}, values...), []any{&one.first, &one.offset, &sealed}, func() (err error) {
			if one.data, err = agekey.Open(sealed, key); err != nil {
				return fmt.Errorf("%w: %w", ErrUnreadable, err)
			}
			all = append(all, one)
			return nil
		})
	return all, err
}
