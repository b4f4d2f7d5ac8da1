package suspended

import (
	"context"
	"database/sql"

	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/database"
)

// sealed is a row whose column content is encrypted with a text about it. The condition selects the row as it was when
// the text was made.
type sealed struct {
	about, table, where string
	args                []any
}

// Reencrypt encrypts what is stored of the runs of a cluster with the first of its keys, where another one was used,
// and returns the number of values. Nodes may serve meanwhile: they encrypt with the first key.
func Reencrypt(ctx context.Context, db *database.DB, keys cluster.Keys) (changed int, err error) {
	runs, err := database.Rows(ctx, db,
		"SELECT run, owner, image, format, number, continued = 1 FROM suspended_run", nil,
		func(rows *sql.Rows) (sealed, error) {
			var run string
			var about About
			err := rows.Scan(&run, &about.Owner, &about.Image, &about.Format, &about.Number, &about.Continued)
			return sealed{about.text(run), "suspended_run", "run = ? AND number = ? AND (continued = 1) = ?",
				[]any{run, about.Number, about.Continued}}, err
		})
	if err != nil {
		return 0, err
	}
	files, err := database.Rows(ctx, db, "SELECT name, part, parts FROM suspended_file", nil,
		func(rows *sql.Rows) (sealed, error) {
			var name string
			var part, parts int
			err := rows.Scan(&name, &part, &parts)
			return sealed{partText(name, part, parts), "suspended_file", "name = ? AND part = ? AND parts = ?",
				[]any{name, part, parts}}, err
		})
	if err != nil {
		return 0, err
	}
	for _, one := range append(runs, files...) {
		done, err := db.Rewrite(ctx, one.table, "content", one.where, one.args, func(content []byte) ([]byte, error) {
			if _, err := keys[:1].Open(content, one.about); err == nil {
				return nil, nil
			}
			plain, err := keys.Open(content, one.about)
			if err != nil {
				return nil, ErrDamaged
			}
			return keys.Seal(plain, one.about), nil
		})
		if err != nil {
			return changed, err
		}
		if done {
			changed++
		}
	}
	// With the former keys, the IDs that were made with them name no node any more.
	return changed, db.Exec(ctx, `INSERT INTO moved_run SELECT run, node, '', unixepoch() FROM suspended_run
		WHERE true ON CONFLICT (id) DO NOTHING`)
}
