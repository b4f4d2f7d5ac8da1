package broker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// readPatience is how long a result waits for code that reads nothing at all,
// before it is withheld.
const readPatience = 5 * time.Second

// unread are the answers of one run that its code has not read yet. They are
// the host's memory, filled by whoever writes the code, so they are bounded:
// results wait for room, and calls that could bring more are not made meanwhile.
// The zero value is ready; methods may be called concurrently.
type unread struct {
	mu       sync.Mutex // guards all below
	bytes    int64
	waiting  int           // results that wait for room
	lastRead time.Time     // when an answer was read
	changed  chan struct{} // closed at the next change; nil when nobody listens
}

var errUnread = errors.New("the answers are not read")

// add waits for room for n more bytes under most. It gives up when nothing at
// all was read for a while; ctx ends it too.
func (u *unread) add(ctx context.Context, n, most int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.bytes > 0 && u.bytes+n > most {
		u.waiting++
		defer func() { u.waiting--; u.changedLocked() }()
	}
	for began := time.Now(); u.bytes > 0 && u.bytes+n > most; {
		idle := min(time.Since(began), time.Since(u.lastRead))
		if idle >= readPatience {
			return errUnread
		}
		if err := u.waitLocked(ctx, readPatience-idle); err != nil {
			return err
		}
	}
	u.bytes += n
	return nil
}

// room waits until no result waits and there are at most most bytes.
func (u *unread) room(ctx context.Context, most int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.waiting > 0 || u.bytes > most {
		if err := u.waitLocked(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// remove says that n bytes were read.
func (u *unread) remove(n int64) {
	if n == 0 {
		return // an answer without a result is no sign that results are read
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes -= n
	u.lastRead = time.Now()
	u.changedLocked()
}

// waitLocked gives the lock back until something has changed, or the time is
// over; 0 means for ever. Its only error is that of ctx.
func (u *unread) waitLocked(ctx context.Context, most time.Duration) error {
	if u.changed == nil {
		u.changed = make(chan struct{})
	}
	changed := u.changed
	u.mu.Unlock()
	defer u.mu.Lock()
	var late <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-changed:
	case <-late:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (u *unread) changedLocked() {
	if u.changed != nil {
		close(u.changed)
		u.changed = nil
	}
}
