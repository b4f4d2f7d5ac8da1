package approval

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// maxOpen is the maximum number of open questions of one Airlock. People do not read more than
	// that carefully. Further questions wait.
	maxOpen = 64
	// maxOpenEach is the maximum number of open questions of one account, so that an account with
	// unanswered questions does not block others. A run has at most this many concurrent calls.
	maxOpenEach = 16
)

// ownRoom counts the open questions of an account.
type ownRoom struct {
	places *semaphore.Weighted
	users  int // questions that are open or waiting to be opened
}

// place is the reservation for one open question.
type place struct {
	desk  *Desk
	leave func() // may be called more than once
	used  bool
}

var _ Reservation = (*place)(nil)

// Reserve reserves capacity for a question of an account, or returns ErrFull.
func (d *Desk) Reserve(account string) (Reservation, error) {
	own, drop := d.ownRoom(account)
	if !own.TryAcquire(1) {
		drop()
		return nil, ErrFull
	}
	if !d.room.TryAcquire(1) {
		own.Release(1)
		drop()
		return nil, ErrFull
	}
	return d.place(own, drop), nil
}

// enter waits until an account may open one more question. The error is that of ctx.
func (d *Desk) enter(ctx context.Context, account string) (*place, error) {
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
	return d.place(own, drop), nil
}

func (d *Desk) place(own *semaphore.Weighted, drop func()) *place {
	return &place{desk: d, leave: sync.OnceFunc(func() {
		d.room.Release(1)
		own.Release(1)
		drop()
	})}
}

// Release releases the reservation, unless a question was opened.
func (p *place) Release() {
	if !p.used {
		p.leave()
	}
}

// Open opens a question. The reservation is released when wait returns.
func (p *place) Open(q Question) (wait func(context.Context) (Verdict, error), err error) {
	p.used = true
	answered, err := p.desk.openQuestion(q)
	if err != nil {
		p.leave()
		return nil, err
	}
	return func(ctx context.Context) (Verdict, error) {
		defer p.leave()
		return answered(ctx)
	}, nil
}

// ownRoom returns the semaphore of an account, which is kept until drop is called.
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
