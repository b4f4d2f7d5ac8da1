package copies

import (
	"context"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/database"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// Rewrite replaces all copies, see objects.Store.Rewrite, and returns the number of those that it has replaced. Nodes
// may make and remove copies meanwhile.
func Rewrite(ctx context.Context, db *database.DB, store *objects.Store,
	rewrite func(sealed []byte) ([]byte, error)) (changed int, err error) {
	before, err := load(ctx, db)
	if err != nil {
		return 0, err
	}
	for n, r := range before {
		done, err := store.Rewrite(ctx, n.object(), rewrite)
		if err != nil {
			return changed, err
		}
		if !done {
			continue
		}
		changed++
		if err := settle(ctx, db, store, n, r); err != nil {
			return changed, fmt.Errorf("the copy of run %q: %w", n.run, err)
		}
	}
	return changed, nil
}

// settle is called after a copy was replaced that had a row before. If a node has removed it meanwhile, the object is
// removed again. If a node has made a newer copy meanwhile, it makes it again, because the object may be the older one.
func settle(ctx context.Context, db *database.DB, store *objects.Store, n name, before row) error {
	after, err := read(ctx, db, n)
	switch {
	case err != nil:
		return err
	case after == row{}:
		return store.Delete(ctx, n.object())
	case after == before:
		return nil
	}
	return db.Exec(ctx, "UPDATE run_copy SET changed = -changed WHERE run = ? AND kind = ? AND changed > 0", n.run,
		n.kind)
}
