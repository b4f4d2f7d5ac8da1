// Package quota shares a fixed number of slots fairly between callers.
package quota

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrBusy is returned if all slots are in use and the queue is full. The caller can retry later.
var ErrBusy = errors.New("all slots are in use and the queue is full")

// Queue is a fair semaphore with a fixed number of slots. A free slot goes to the caller
// with the fewest slots in use; among these, to the one served least recently; among one
// caller's waiters, to the first. If the queue is full, a new waiter replaces the last
// waiter of the caller with the most waiters, unless that is the new waiter's caller. So
// no caller can fill the queue for others.
type Queue struct {
	slots, places int

	mu      sync.Mutex       // guards what follows
	of      map[string]*line // by caller; only those with a slot or in the queue
	taken   int              // slots in use
	waiting int              // places in use
	turns   int              // counts arrivals and turns, to order them
}

// line has the slots and waiters of one caller.
type line struct {
	inUse   int
	waiters []*waiter // in order of arrival
	since   int       // the number of its last turn or, if it had none yet, of its first arrival
}

// waiter waits for a slot.
type waiter struct {
	number int        // of its arrival
	turn   chan error // has one: nil for a slot, or ErrBusy
}

// New returns a queue with the given numbers of slots and waiters.
func New(slots, places int) *Queue {
	return &Queue{slots: slots, places: places, of: map[string]*line{}}
}

// Reserve takes a slot for a caller, waiting for one if it must; Release gives it back. It
// returns ErrBusy when too many wait already, at once or later, and the context's cause
// when that ends first.
func (q *Queue) Reserve(ctx context.Context, caller string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w, err := q.enter(caller)
	if w == nil {
		return err
	}
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
	}
	if !q.leave(caller, w) && <-w.turn == nil {
		q.Release(caller) // the slot came too late
	}
	return context.Cause(ctx)
}

// enter takes a slot, or else a place in the queue, and returns who waits there.
func (q *Queue) enter(caller string) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine := q.of[caller]
	if mine == nil {
		mine = &line{since: q.turns + 1}
	}
	if q.taken < q.slots {
		q.turns++
		q.taken++
		mine.inUse++
		mine.since = q.turns
		q.of[caller] = mine
		return nil, nil
	}
	if q.waiting >= q.places && !q.refuseLocked(len(mine.waiters)+1) {
		return nil, ErrBusy
	}
	q.turns++
	w := &waiter{q.turns, make(chan error, 1)}
	mine.waiters = append(mine.waiters, w)
	q.waiting++
	q.of[caller] = mine
	return w, nil
}

// refuseLocked removes a waiter from a full queue if a caller has more than n of them.
func (q *Queue) refuseLocked(n int) bool {
	var last *waiter
	from := ""
	for caller, l := range q.of {
		if has := len(l.waiters); has > n || has == n && last != nil && l.waiters[has-1].number > last.number {
			n, last, from = has, l.waiters[has-1], caller
		}
	}
	if last == nil {
		return false
	}
	last.turn <- ErrBusy
	q.removeLocked(from, n-1)
	return true
}

// leave removes a waiter. It returns false if the waiter's turn has already come.
func (q *Queue) leave(caller string, w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.of[caller]
	if l == nil {
		return false
	}
	at := slices.Index(l.waiters, w)
	if at < 0 {
		return false
	}
	q.removeLocked(caller, at)
	return true
}

// removeLocked takes a waiter out of a line.
func (q *Queue) removeLocked(caller string, at int) {
	l := q.of[caller]
	l.waiters = slices.Delete(l.waiters, at, at+1)
	q.waiting--
	if l.inUse == 0 && len(l.waiters) == 0 {
		delete(q.of, caller)
	}
}

// Release releases a slot of a caller and gives it to the next waiter.
func (q *Queue) Release(caller string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	if l := q.of[caller]; l.inUse > 1 || len(l.waiters) > 0 {
		l.inUse--
	} else {
		delete(q.of, caller)
	}
	if q.waiting == 0 {
		return
	}
	next, who := (*line)(nil), ""
	for caller, l := range q.of {
		if len(l.waiters) > 0 && (next == nil || l.before(next)) {
			next, who = l, caller
		}
	}
	q.taken++
	q.turns++
	next.inUse++
	next.since = q.turns
	next.waiters[0].turn <- nil
	q.removeLocked(who, 0)
}

// before reports whether the turn of one line comes before that of another. What comes, or has a
// turn, later has a larger since: no line waits behind others that become empty and come again.
func (l *line) before(other *line) bool {
	if l.inUse != other.inUse {
		return l.inUse < other.inUse
	}
	return l.since < other.since
}

// Load returns how many slots and places are in use.
func (q *Queue) Load() (taken, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken, q.waiting
}
