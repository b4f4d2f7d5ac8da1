package runner

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 10)
		if err := q.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		var served []int
		for i := range 5 {
			go func() {
				if err := q.enter(t.Context()); err != nil {
					t.Error(err)
				}
				served = append(served, i) // one seat: nobody else is here
				q.leave()
			}()
			synctest.Wait()
		}
		q.leave()
		synctest.Wait()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(served, want) {
			t.Errorf("order: got %v, want %v", served, want)
		}
	})
}

func TestQueueForgetsWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 1)
		if err := q.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		entered := make(chan error, 1)
		go func() { entered <- q.enter(t.Context()) }()
		synctest.Wait()
		if err := q.enter(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("a second in a line of one: got %v, want ErrBusy", err)
		}
		q.leave()
		if err := <-entered; err != nil {
			t.Errorf("the next in line: %v", err)
		}
		q.leave()
		if q.taken != 0 || q.line.Len() != 0 {
			t.Errorf("in the end: got %d seats taken and %d waiting, want none", q.taken, q.line.Len())
		}
	})
}

// TestQueueKeepsASeatThatCameTooLate covers the moment in which a seat and the
// end of the wait come together.
func TestQueueKeepsASeatThatCameTooLate(t *testing.T) {
	q := newQueue(1, 1)
	if err := q.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	turn := make(chan struct{})
	place := q.line.PushBack(turn)
	q.leave() // gives the seat to the one in line
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.giveUp(ctx, place, turn); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if q.taken != 0 {
		t.Errorf("seats taken: got %d, want 0", q.taken)
	}
}
