package approval

import (
	"context"
	"sync"

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

// ownRoom counts the open questions of an account.
type ownRoom struct {
	places *semaphore.Weighted
	users  int // questions that are open, or wait to be
}

// place is a place for one open question.
type place struct {
	desk  *Desk
	leave func() // may be called more than once
	used  bool
}

var _ Reservation = (*place)(nil)

// Reserve reserves a place for a question of an account, or returns ErrFull.
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

// enter waits until an account may have one more question open. The error is ctx's.
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

// Release gives up the place, unless a question was opened.
func (p *place) Release() {
	if !p.used {
		p.leave()
	}
}

// Open opens a question at the place, which is free again when wait returns.
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

// ownRoom returns the count of an account, which is kept until drop is called.
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
