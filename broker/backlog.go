package broker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// backlog bounds the bytes that one run makes the host hold: answers that its
// code has not read yet, and arguments that are being worked on. Whatever comes
// waits for room. The zero value is ready; methods may be called concurrently.
type backlog struct {
	mu      sync.Mutex // guards all below
	bytes   int64
	waiting int           // calls of add that wait for room
	eased   time.Time     // when something was removed
	changed chan struct{} // closed at the next change; nil when no call waits
}

// errStuck says that nothing was removed for a while.
var errStuck = errors.New("nothing moves on")

// add waits for room for n more bytes under most; what is larger than that has
// to be alone. It gives up when nothing at all was removed for the time of
// patience, where that is not 0; ctx ends it too.
func (b *backlog) add(ctx context.Context, n, most int64, patience time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > 0 && b.bytes+n > most {
		b.waiting++
		defer func() { b.waiting--; b.changedLocked() }()
	}
	for began := time.Now(); b.bytes > 0 && b.bytes+n > most; {
		var left time.Duration
		if patience > 0 {
			if left = patience - min(time.Since(began), time.Since(b.eased)); left <= 0 {
				return errStuck
			}
		}
		if err := b.waitLocked(ctx, left); err != nil {
			return err
		}
	}
	b.bytes += n
	return nil
}

// room waits until nothing waits and there are at most most bytes.
func (b *backlog) room(ctx context.Context, most int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.waiting > 0 || b.bytes > most {
		if err := b.waitLocked(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// remove says that n bytes are held no longer.
func (b *backlog) remove(n int64) {
	if n == 0 {
		return // nothing eases with that
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= n
	b.eased = time.Now()
	b.changedLocked()
}

// waitLocked gives the lock back until something has changed, or the time is
// over; 0 means for ever. Its only error is that of ctx.
func (b *backlog) waitLocked(ctx context.Context, most time.Duration) error {
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	changed := b.changed
	b.mu.Unlock()
	defer b.mu.Lock()
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

func (b *backlog) changedLocked() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}
