package approval

import (
	"context"

	"github.com/airlock-mcp/airlock/internal/quota"
)

// reservation is the capacity for one open question.
type reservation struct {
	desk *Desk
	unit *quota.Reservation
	used bool
}

var _ Reservation = (*reservation)(nil)

// Reserve reserves capacity for a question of an account, or returns ErrFull.
func (d *Desk) Reserve(account string) (Reservation, error) {
	unit, err := d.limiter.Take(account, 1)
	if err != nil {
		return nil, ErrFull
	}
	return &reservation{desk: d, unit: unit}, nil
}

// Release releases the capacity, unless a question was opened.
func (r *reservation) Release() {
	if !r.used {
		r.unit.Release()
	}
}

// Open opens a question. The capacity is released when wait returns.
func (r *reservation) Open(q Question) (wait func(context.Context) (Verdict, error), err error) {
	r.used = true
	answered, err := r.desk.openQuestion(q)
	if err != nil {
		r.unit.Release()
		return nil, err
	}
	return func(ctx context.Context) (Verdict, error) {
		defer r.unit.Release()
		return answered(ctx)
	}, nil
}
