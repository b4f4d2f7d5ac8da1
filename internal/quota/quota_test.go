package quota

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A queue with one slot, in use while callers arrive: the waiters are served in the order
// given, and all others are refused.
func TestQueue(t *testing.T) {
	for name, test := range map[string]struct {
		places                   int
		arrive, refused, serving string
	}{
		"one caller":           {9, "a a a a a", "", "a0 a1 a2 a3 a4"},
		"callers have turns":   {9, "a a a a b a b c", "", "a0 b4 c7 a1 b6 a2 a3 a5"},
		"no place":             {0, "a b", "a0 b1", ""},
		"one caller fills it":  {4, "a a a a a a", "a4 a5", "a0 a1 a2 a3"},
		"no caller fills it":   {4, "a a a a a b b c c", "a4 a3 a2 b6 c8", "a0 b5 c7 a1"},
		"many callers fill it": {3, "a b c d a", "d3 a4", "a0 b1 c2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(1, test.places)
				if err := q.Reserve(t.Context(), "z"); err != nil {
					t.Fatal(err)
				}
				var refused, served []string // one goroutine at a time adds to them
				for n, caller := range strings.Fields(test.arrive) {
					go func() {
						who := fmt.Sprint(caller, n)
						switch err := q.Reserve(t.Context(), caller); {
						case errors.Is(err, ErrBusy):
							refused = append(refused, who)
						case err != nil:
							t.Error(err)
						default:
							served = append(served, who)
							q.Release(caller)
						}
					}()
					synctest.Wait()
				}
				q.Release("z")
				synctest.Wait()
				if got := strings.Join(refused, " "); got != test.refused {
					t.Errorf("refused: got %s, want %s", got, test.refused)
				}
				if got := strings.Join(served, " "); got != test.serving {
					t.Errorf("served: got %s, want %s", got, test.serving)
				}
				empty(t, q)
			})
		})
	}
}

// A caller that has had a turn and waits again has the next one before those who come
// later, also where each of them waits for the first time.
func TestQueueStarvesNoCallerBehindNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 20
		q := New(1, 9)
		turns := make(chan string, late+5)
		arrive := func(caller string) {
			go func() {
				if err := q.Reserve(t.Context(), caller); err != nil {
					t.Error(err)
				}
				turns <- caller
			}()
			synctest.Wait()
		}
		for _, caller := range []string{"a", "a", "a", "early 1", "early 2"} {
			arrive(caller)
		}
		var served []string
		for n := range cap(turns) {
			caller := <-turns
			served = append(served, caller)
			if n < late {
				arrive(fmt.Sprint("late ", n))
			}
			q.Release(caller)
		}
		if want := []string{"a", "a", "early 1", "early 2"}; !slices.Equal(served[:4], want) || served[4] != "late 0" || served[5] != "a" {
			t.Errorf("got turns of %q, want %q, then of late 0 and of a", served, want)
		}
		empty(t, q)
	})
}

// A slot goes to the caller with the fewest in use, even if it arrived last.
func TestQueueEvensOutWhatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(3, 9)
		for _, caller := range []string{"a", "a", "b"} {
			if err := q.Reserve(t.Context(), caller); err != nil {
				t.Fatal(err)
			}
		}
		turns := make(chan string, 3)
		for _, caller := range []string{"a", "b", "c"} {
			go func() {
				if err := q.Reserve(t.Context(), caller); err != nil {
					t.Error(err)
				}
				turns <- caller
			}()
			synctest.Wait()
		}
		for _, free := range []struct{ of, next string }{{"a", "c"}, {"a", "a"}, {"b", "b"}} {
			q.Release(free.of)
			if got := <-turns; got != free.next {
				t.Errorf("a slot of %s went to %s, want %s", free.of, got, free.next)
			}
		}
	})
}

func TestQueueForgetsACallerThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1, 1)
		if err := q.Reserve(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Reserve(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		entered := make(chan error, 1)
		go func() { entered <- q.Reserve(t.Context(), "a") }()
		synctest.Wait()
		if err := q.Reserve(t.Context(), "a"); !errors.Is(err, ErrBusy) {
			t.Errorf("a second in a queue of one: got %v, want ErrBusy", err)
		}
		q.Release("a")
		if err := <-entered; err != nil {
			t.Errorf("the next waiter: %v", err)
		}
		q.Release("a")
		empty(t, q)
	})
}

// Under concurrent load the numbers of slots and waiters stay within their limits, each
// waiter gets a slot or an error, and nothing is left at the end. Callers also give up at
// the moment in which they get a slot or are replaced in the queue.
func TestQueueUnderLoad(t *testing.T) {
	const slots, places = 3, 5
	q := New(slots, places)
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			caller := fmt.Sprint(n % 4)
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Microsecond)
				err := q.Reserve(ctx, caller)
				if taken, waiting := q.Load(); taken > slots || waiting > places {
					t.Errorf("%d slots and %d places are in use", taken, waiting)
				}
				if err == nil {
					time.Sleep(time.Duration(random.IntN(20)) * time.Microsecond)
					q.Release(caller)
				} else if !errors.Is(err, ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	empty(t, q)
}

// empty reports what is still in use of a queue.
func empty(t *testing.T, q *Queue) {
	t.Helper()
	if taken, waiting := q.Load(); taken != 0 || waiting != 0 || len(q.of) != 0 {
		t.Errorf("in the end: got %d slots, %d places and %d callers, want none", taken, waiting, len(q.of))
	}
}
