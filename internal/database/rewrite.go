package database

import (
	"context"
	"database/sql"
	"errors"
)

// Rewrite replaces the value of a column in the row of a table that a condition selects, in one transaction. rewrite
// returns the new value, or nil if the value stays; it may be called again. Rewrite reports whether it has replaced the
// value. A row that does not exist any more is not an error.
func (d *DB) Rewrite(ctx context.Context, table, column, where string, args []any,
	rewrite func(value []byte) ([]byte, error)) (done bool, err error) {
	err = d.Update(ctx, func(tx Tx) error {
		done = false
		var value []byte
		err := tx.QueryRowContext(ctx, "SELECT "+column+" FROM "+table+" WHERE "+where, args...).Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			value, err = rewrite(value)
		}
		if err != nil || value == nil {
			return err
		}
		done = true
		_, err = tx.ExecContext(ctx, "UPDATE "+table+" SET "+column+" = ? WHERE "+where,
			append([]any{value}, args...)...)
		return err
	})
	return done, err
}

// Rows returns what read makes of each row of a query.
func Rows[T any](ctx context.Context, db *DB, query string, read func(*sql.Rows) (T, error)) (all []T, err error) {
	err = db.View(ctx, func(tx Tx) error {
		all = nil
		rows, err := tx.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			one, err := read(rows)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return rows.Err()
	})
	return all, err
}
