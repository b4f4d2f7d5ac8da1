package database

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
)

// maxBatch is how many updates share a commit.
const maxBatch = 128

// writer runs the updates of one process in a separate goroutine.
type writer struct {
	db      *sql.DB
	conn    *connection // of the goroutine; nil if not connected
	updates chan *update
	done    chan struct{} // closed when the goroutine has ended

	mu     sync.RWMutex // held for reading while an update is handed over
	closed bool
}

// update is one call of Update.
type update struct {
	isOver func() error // the error of the caller's context, or nil
	do     func(Tx) error
	result chan error // has a buffer of one
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
	defer w.disconnect()
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

// transact sets the error of each update. The error that it returns is for all of them.
func (w *writer) transact(batch []*update, results []error) error {
	if w.conn == nil {
		conn, err := connect(context.Background(), w.db)
		if err != nil {
			return err
		}
		w.conn = conn
	}
	err := w.conn.exec("BEGIN IMMEDIATE")
	if err == nil {
		err = w.conn.compareVersion()
	}
	for i, u := range batch {
		if err != nil {
			break
		}
		if results[i] = u.isOver(); results[i] == nil {
			results[i], err = w.conn.one(u.do)
		}
	}
	if err == nil {
		err = w.conn.executeLate(&w.conn.late.all)
	}
	if err == nil {
		err = w.conn.exec("COMMIT")
	}
	if err != nil {
		w.disconnect()
	}
	return err
}

// disconnect undoes the open transaction, if there is one, with its connection. The next
// transaction gets another.
func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	_ = w.conn.exec("ROLLBACK") // an error means that SQLite has rolled back already
	_ = w.conn.close()          // nothing depends on it
	w.conn = nil
}
