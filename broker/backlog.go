package broker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// backlog limits the bytes that the host holds for one run: results that its code has not read yet,
// and arguments that are being processed. Further calls wait. The zero value is ready to use. It is
// safe for concurrent use.
type backlog struct {
	mu      sync.Mutex // guards all fields below
	bytes   int64
	waiting int           // number of add calls that are waiting
	eased   time.Time     // time of the last removal
	changed chan struct{} // closed at the next change; nil if no call waits
}

// errStuck is returned if nothing was removed for a while.
var errStuck = errors.New("the program has read none of its results for a while")

// add waits until n more bytes fit within most, and adds them. A larger n waits until the backlog
// is empty. If timeout is not 0 and nothing is removed for that time, add returns errStuck. It
// also returns when ctx ends.
func (b *backlog) add(ctx context.Context, n, most int64, timeout time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > 0 && b.bytes+n > most {
		b.waiting++
		defer func() { b.waiting--; b.changedLocked() }()
	}
	for began := time.Now(); b.bytes > 0 && b.bytes+n > most; {
		var left time.Duration
		if timeout > 0 {
			if left = timeout - min(time.Since(began), time.Since(b.eased)); left <= 0 {
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

// waitBelow waits until no other call waits and at most most bytes are held.
func (b *backlog) waitBelow(ctx context.Context, most int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.waiting > 0 || b.bytes > most {
		if err := b.waitLocked(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// remove subtracts n bytes.
func (b *backlog) remove(n int64) {
	if n == 0 {
		return // nothing was removed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= n
	b.eased = time.Now()
	b.changedLocked()
}

// waitLocked releases the lock until something has changed or the time has passed; 0 means no time
// limit. Its only error is that of ctx.
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
