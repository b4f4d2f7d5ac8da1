package approval

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// maxOpen is how many questions one Airlock has open at a time: a person who is
	// asked more than that no longer reads. More wait.
	maxOpen = 64
	// maxOpenEach is how many of them one account has: one that lets its questions wait
	// leaves room for those of others. A run makes no more calls at one time.
	maxOpenEach = 16
)

// ownRoom is what an account has of the room for open questions.
type ownRoom struct {
	places *semaphore.Weighted
	users  int // questions that are open, or wait to be
}

// enter waits until an account may have one more question open, until leave is called.
// The error is ctx's.
func (d *Desk) enter(ctx context.Context, account string) (leave func(), err error) {
	own, drop := d.ownRoom(account)
	if err := own.Acquire(ctx, 1); err != nil {
		drop()
		return nil, err
	}
	if err := d.room.Acquire(ctx, 1); err != nil {
		own.Release(1)
		drop()
		return nil, err
	}
	return func() {
		d.room.Release(1)
		own.Release(1)
		drop()
	}, nil
}

// ownRoom returns an account's room, which is there until drop is called.
func (d *Desk) ownRoom(account string) (own *semaphore.Weighted, drop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rooms[account]
	if r == nil {
		r = &ownRoom{places: semaphore.NewWeighted(maxOpenEach)}
		d.rooms[account] = r
	}
	r.users++
	return r.places, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if r.users--; r.users == 0 {
			delete(d.rooms, account)
		}
	}
}
