package database

import (
	"context"
	"slices"
)

// Write is a change of rows that can be executed later than the update that makes it: together with those of other
// updates that share its commit.
type Write interface {
	// Key identifies the rows. Of the writes with one key only one is executed.
	Key() any
	// After returns the write that has the effect of an earlier one, which has the same key, and then of this one. It
	// may change both. It is called when the update has succeeded.
	After(earlier Write) Write
	// Execute executes the write, with ExecKeeping.
	Execute(ctx context.Context, tx Tx) error
}

// Later executes a write before the next statement of any update, and at the latest before the commit. So no statement
// can find the database without it. Like ExecKeeping, it keeps the Memo. If the write fails, all updates that share
// the commit fail. In PostgreSQL, where updates share no commit, the write is executed at once.
func Later(ctx context.Context, tx Tx, w Write) error {
	c, ok := tx.(*connection)
	if !ok || c.reads {
		return w.Execute(ctx, tx)
	}
	c.late.own = merged(c.late.own, w)
	return nil
}

// lateWrites are the writes that a connection has not executed yet.
type lateWrites struct {
	all     []Write // of updates that have succeeded
	own     []Write // of the update that runs
	saved   bool    // whether its savepoint exists
	running bool    // whether a write is being executed
	failed  error   // of a write; the transaction must be undone
}

func merged(all []Write, w Write) []Write {
	i := slices.IndexFunc(all, func(earlier Write) bool { return earlier.Key() == w.Key() })
	if i < 0 {
		return append(all, w)
	}
	all[i] = w.After(all[i])
	return all
}

// one runs one update so that it can be undone alone. failed is the error of the update, err that of the transaction.
// The savepoint is made before the first statement of the update, so that an update without one costs nothing.
func (c *connection) one(do func(Tx) error) (failed, err error) {
	c.late.own, c.late.saved = nil, false
	failed = protect(c, do)
	if c.late.failed != nil {
		return failed, c.late.failed
	}
	if failed != nil {
		c.memo.clear()
		c.late.own = nil
		if c.late.saved {
			err = c.exec("ROLLBACK TO one")
		}
	}
	if err == nil && c.late.saved {
		err = c.exec("RELEASE one")
	}
	for _, w := range c.late.own {
		c.late.all = merged(c.late.all, w)
	}
	c.late.own = nil
	return failed, err
}

// ready prepares a transaction for a statement of an update: it executes the late writes, those of other updates
// outside of the savepoint of this one.
func (c *connection) ready() error {
	if c.reads || c.late.running || c.late.failed != nil {
		return c.late.failed
	}
	err := c.executeLate(&c.late.all)
	if err == nil && !c.late.saved {
		err = c.exec("SAVEPOINT one")
		c.late.saved = err == nil
	}
	if err == nil {
		err = c.executeLate(&c.late.own)
	}
	c.late.failed = err
	return err
}

func (c *connection) executeLate(writes *[]Write) error {
	c.late.running = true
	defer func() { c.late.running = false }()
	for _, w := range *writes {
		if err := w.Execute(context.Background(), c); err != nil {
			return err
		}
	}
	*writes = nil
	return nil
}
