package clusterlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// ErrNoCopies is returned by Copied for a log without copies.
var ErrNoCopies = errors.New("the cluster has no copies of its records")

// ErrUnreadable is returned by Copied, and by the function that it returns, if a copy is missing, or is damaged or
// encrypted with another key.
var ErrUnreadable = errors.New("a copy of its records cannot be read")

// copies are the copies of a log.
type copies struct {
	origin   string
	key      Key
	objects  *objects.Store
	shipped  []uint64          // the first records of files in the object store
	tails    map[uint64][]byte // the content of other files, by their first records
	removals []byte

	opened  uint64 // the file of content
	content []byte
}

// Copied returns a function that reads the copies of a log, for audit.Mirror.
func Copied(ctx context.Context, db *database.DB, key Key, store *objects.Store, origin string) (
	func(first uint64, offset int64) (audit.Piece, error), error) {
	c := &copies{origin: origin, key: key, objects: store}
	if err := db.View(ctx, func(tx database.Tx) error { return c.read(ctx, tx) }); err != nil {
		return nil, err
	}
	if len(c.shipped)+len(c.tails) == 0 {
		return nil, ErrNoCopies
	}
	var err error
	if c.removals, err = get(ctx, store, key, objectOf(origin, removalsName)); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return func(first uint64, offset int64) (audit.Piece, error) { return c.piece(ctx, first, offset) }, err
}

func (c *copies) read(ctx context.Context, tx database.Tx) error {
	c.shipped, c.tails = nil, map[uint64][]byte{}
	files, err := readFiles(ctx, tx, "origin = ?", c.origin)
	if err != nil {
		return err
	}
	for _, one := range files {
		c.shipped = append(c.shipped, one.first)
	}
	stored, err := readTails(ctx, tx, c.key, c.origin, "ORDER BY first, start")
	if err != nil {
		return err
	}
	for _, one := range stored {
		switch content := c.tails[one.first]; {
		case slices.Contains(c.shipped, one.first): // stored while the file was copied
		case one.offset != int64(len(content)):
			return fmt.Errorf("%w: the database lacks bytes of the file that begins with record %d", ErrUnreadable,
				one.first)
		default:
			c.tails[one.first] = append(content, one.data...)
		}
	}
	return nil
}

// piece is like audit.ReadPiece.
func (c *copies) piece(ctx context.Context, first uint64, offset int64) (audit.Piece, error) {
	p := audit.Piece{Origin: c.origin}
	if first == 0 {
		p.Files, p.Removals = slices.Clone(c.shipped), c.removals
		for tail := range c.tails {
			p.Files = append(p.Files, tail)
		}
		slices.Sort(p.Files)
		return p, nil
	}
	if first != c.opened {
		content := c.tails[first]
		if slices.Contains(c.shipped, first) {
			var err error
			content, err = get(ctx, c.objects, c.key, objectOf(c.origin, fileName(first)))
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: %w", ErrUnreadable, err)
			}
			if err != nil {
				return p, err
			}
		}
		c.opened, c.content = first, content
	}
	p.Data = c.content[min(offset, int64(len(c.content))):]
	return p, nil
}

// RewriteCopies replaces all copies in an object store, see objects.Store.Rewrite, and returns the number of those that
// it has replaced. Nodes may make and remove copies meanwhile.
func RewriteCopies(ctx context.Context, db *database.DB, store *objects.Store,
	rewrite func(sealed []byte) ([]byte, error)) (changed int, err error) {
	names, err := copyNames(ctx, db)
	if err != nil {
		return 0, err
	}
	var rewritten []string
	for _, name := range names {
		done, err := store.Rewrite(ctx, name, rewrite)
		if err != nil {
			return len(rewritten), err
		}
		if done {
			rewritten = append(rewritten, name)
		}
	}
	if names, err = copyNames(ctx, db); err != nil {
		return len(rewritten), err
	}
	for _, name := range rewritten {
		if !slices.Contains(names, name) { // a node has removed it meanwhile
			err = errors.Join(err, store.Delete(ctx, name))
		}
	}
	return len(rewritten), err
}

// copyNames returns the names of the objects that are copies.
func copyNames(ctx context.Context, db *database.DB) (names []string, err error) {
	err = db.View(ctx, func(tx database.Tx) error {
		names = nil
		files, err := readFiles(ctx, tx, "true")
		if err != nil {
			return err
		}
		for _, one := range files {
			names = append(names, objectOf(one.origin, fileName(one.first)))
		}
		origins, err := database.RowsIn(ctx, tx, "SELECT origin FROM audit_log", nil, database.Column[string])
		for _, origin := range origins {
			names = append(names, objectOf(origin, removalsName))
		}
		return err
	})
	return names, err
}
