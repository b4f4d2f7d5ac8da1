package runner

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// ErrBusy says that as many sandboxes run and as many callers wait as are
// allowed. It is worth trying again later.
var ErrBusy = errors.New("too many sandboxes: all are in use and the queue is full")

// queue hands out a fixed number of seats, first come, first served.
type queue struct {
	seats, waiting int // capacities

	mu    sync.Mutex
	taken int
	line  list.List // of chan struct{}, closed when its owner has a seat
}

func newQueue(seats, waiting int) *queue { return &queue{seats: seats, waiting: waiting} }

// enter takes a seat, waiting in line if it must. It returns ErrBusy when the
// line is full, and the context's cause when that ends first.
func (q *queue) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.mu.Lock()
	if q.taken < q.seats {
		q.taken++
		q.mu.Unlock()
		return nil
	}
	if q.line.Len() >= q.waiting {
		q.mu.Unlock()
		return ErrBusy
	}
	turn := make(chan struct{})
	place := q.line.PushBack(turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return q.giveUp(ctx, place, turn)
	}
}

// giveUp leaves the line. The seat may have come at the same moment: then it
// goes to the next in line.
func (q *queue) giveUp(ctx context.Context, place *list.Element, turn <-chan struct{}) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-turn:
		q.leaveLocked()
	default:
		q.line.Remove(place)
	}
	return context.Cause(ctx)
}

// leave gives a seat back.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaveLocked()
}

func (q *queue) leaveLocked() {
	first := q.line.Front()
	if first == nil {
		q.taken--
		return
	}
	close(q.line.Remove(first).(chan struct{}))
}
