package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// maxBatch is how many updates share a commit.
const maxBatch = 128

// writer runs the updates of one process in a goroutine of its own.
type writer struct {
	db      *sql.DB
	updates chan *update
	done    chan struct{} // closed when the goroutine has ended

	mu     sync.RWMutex // held for reading while an update is handed over
	closed bool
}

// update is one call of Update.
type update struct {
	isOver func() error // the error of the caller's context, or nil
	do     func(Tx) error
	result chan error // of one place
}

func startWriter(db *sql.DB) *writer {
	w := &writer{db: db, updates: make(chan *update, maxBatch), done: make(chan struct{})}
	go w.run()
	return w
}

func (w *writer) do(ctx context.Context, f func(Tx) error) error {
	u := &update{isOver: ctx.Err, do: f, result: make(chan error, 1)}
	if err := w.hand(ctx, u); err != nil {
		return err
	}
	return <-u.result
}

func (w *writer) hand(ctx context.Context, u *update) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.updates <- u:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.updates)
	}
	w.mu.Unlock()
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.updates {
		batch := []*update{first}
		for len(batch) < maxBatch {
			select {
			case next, ok := <-w.updates:
				if !ok {
					w.commit(batch)
					return
				}
				batch = append(batch, next)
				continue
			default:
			}
			break
		}
		w.commit(batch)
	}
}

// commit runs the updates of a batch and answers each.
func (w *writer) commit(batch []*update) {
	results := make([]error, len(batch))
	err := w.transact(batch, results)
	for i, u := range batch {
		if err != nil && results[i] == nil {
			results[i] = fmt.Errorf("committing to the database: %w", err)
		}
		u.result <- results[i]
	}
}

// transact fills in the error of each update. Its own error is for all of them.
func (w *writer) transact(batch []*update, results []error) error {
	ctx := context.Background() // an update that has begun is not cut off
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit there is nothing to undo
	for i, u := range batch {
		if results[i] = u.isOver(); results[i] != nil {
			continue
		}
		if err := savepoint(ctx, tx, u.do, &results[i]); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// savepoint runs one update so that it can be undone alone. failed is the
// update's own error; the one returned is the database's.
func savepoint(ctx context.Context, tx *sql.Tx, do func(Tx) error, failed *error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	*failed = protect(tx, do)
	end := "RELEASE one"
	if *failed != nil {
		end = "ROLLBACK TO one; RELEASE one"
	}
	_, err := tx.ExecContext(ctx, end)
	return err
}

// protect turns a panic of one update into its error: the others' commit must
// not hang because of it.
func protect(tx *sql.Tx, do func(Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(errors.New("an update of the database panicked"), fmt.Errorf("%v", p))
		}
	}()
	return do(tx)
}
