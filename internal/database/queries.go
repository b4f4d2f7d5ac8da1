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

// Exec runs one statement in a transaction, as Update does.
func (d *DB) Exec(ctx context.Context, query string, args ...any) error {
	return d.Update(ctx, func(tx Tx) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
}

// Change is Exec. It reports whether the statement has changed a row.
func (d *DB) Change(ctx context.Context, query string, args ...any) (changed bool, err error) {
	err = d.Update(ctx, func(tx Tx) error {
		changed, err = Changed(ctx, tx, query, args...)
		return err
	})
	return changed, err
}

// Changed executes a statement in a transaction. It reports whether the statement has changed a row.
func Changed(ctx context.Context, tx Tx, query string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// QueryRow scans the first row of a query, as View does; sql.ErrNoRows if there is none.
func (d *DB) QueryRow(ctx context.Context, query string, args []any, into ...any) error {
	return d.Query(ctx, func(tx Tx) error { return tx.QueryRowContext(ctx, query, args...).Scan(into...) })
}

// Rows returns what read makes of each row of a query, as View does; an empty slice if there is none.
func Rows[T any](ctx context.Context, db *DB, query string, args []any, read func(*sql.Rows) (T, error)) (
	all []T, err error) {
	err = db.Query(ctx, func(tx Tx) error {
		all, err = RowsIn(ctx, tx, query, args, read)
		return err
	})
	return all, err
}

// RowsIn is Rows in a transaction.
func RowsIn[T any](ctx context.Context, tx Tx, query string, args []any, read func(*sql.Rows) (T, error)) ([]T, error) {
	all := []T{}
	err := EachRow(ctx, tx, query, args, func(rows *sql.Rows) error {
		one, err := read(rows)
		all = append(all, one)
		return err
	})
	return all, err
}

// Column reads a row with one column, for Rows.
func Column[T any](rows *sql.Rows) (value T, err error) {
	err = rows.Scan(&value)
	return value, err
}

// EachRow calls read, which scans the row, for each row of a query until read returns an error.
func EachRow(ctx context.Context, tx Tx, query string, args []any, read func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ScanRows scans each row of a query into the same places and calls each, until each returns an error.
func ScanRows(ctx context.Context, tx Tx, query string, args, into []any, each func() error) error {
	return EachRow(ctx, tx, query, args, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return each()
	})
}
