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
		if err := q.reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		var served []int
		for i := range 5 {
			go func() {
				if err := q.reserve(t.Context()); err != nil {
					t.Error(err)
				}
				served = append(served, i) // one slot: no other goroutine is here
				q.release()
			}()
			synctest.Wait()
		}
		q.release()
		synctest.Wait()
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(served, want) {
			t.Errorf("order: got %v, want %v", served, want)
		}
	})
}

func TestQueueForgetsACallerThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 1)
		if err := q.reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.reserve(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		entered := make(chan error, 1)
		go func() { entered <- q.reserve(t.Context()) }()
		synctest.Wait()
		if err := q.reserve(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("a second in a queue of one: got %v, want ErrBusy", err)
		}
		q.release()
		if err := <-entered; err != nil {
			t.Errorf("the next waiter: %v", err)
		}
		q.release()
		if !q.slots.TryAcquire(1) || len(q.waiters) != 0 {
			t.Errorf("in the end: got no free slot or %d waiting, want a slot and none", len(q.waiters))
		}
	})
}

// TestQueueKeepsASlotThatCameTooLate covers the moment in which a slot becomes
// free and the wait for it ends.
func TestQueueKeepsASlotThatCameTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			q := newQueue(1, 1)
			if err := q.reserve(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() { got <- q.reserve(ctx) }()
			synctest.Wait()
			go cancel()
			q.release()
			if err := <-got; err == nil {
				q.release()
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want a slot or the context's error", err)
			}
			if err := q.reserve(t.Context()); err != nil {
				t.Errorf("in the end: got %v, want a free slot", err)
			}
			cancel()
		}
	})
}
