package quota

import (
	"context"
	"errors"
	"fmt"
	"math"
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
				q := New(Limit{Total: 1, Queue: test.places})
				z := reserve(t, q, "z")
				var refused, served []string // one goroutine at a time adds to them
				for n, caller := range strings.Fields(test.arrive) {
					go func() {
						who := fmt.Sprint(caller, n)
						switch unit, err := q.Wait(t.Context(), caller); {
						case isRefused(err):
							refused = append(refused, who)
						case err != nil:
							t.Error(err)
						default:
							served = append(served, who)
							unit.Release()
						}
					}()
					synctest.Wait()
				}
				z.Release()
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
		q := New(Limit{Total: 1, Queue: 9})
		turns := make(chan *Reservation, late+5)
		arrive := func(caller string) {
			go func() { turns <- reserve(t, q, caller) }()
			synctest.Wait()
		}
		for _, caller := range []string{"a", "a", "a", "early 1", "early 2"} {
			arrive(caller)
		}
		var served []string
		for n := range cap(turns) {
			unit := <-turns
			served = append(served, unit.account)
			if n < late {
				arrive(fmt.Sprint("late ", n))
			}
			unit.Release()
		}
		if want := []string{"a", "a", "early 1", "early 2"}; !slices.Equal(served[:4], want) || served[4] != "late 0" ||
			served[5] != "a" {
			t.Errorf("got turns of %q, want %q, then of late 0 and of a", served, want)
		}
		empty(t, q)
	})
}

// A unit goes to the account with the fewest in use, even if it arrived last.
func TestQueueEvensOutWhatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limit{Total: 3, Queue: 9})
		held := map[string][]*Reservation{}
		for _, caller := range []string{"a", "a", "b"} {
			held[caller] = append(held[caller], reserve(t, q, caller))
		}
		turns := make(chan string, 3)
		for _, caller := range []string{"a", "b", "c"} {
			go func() { turns <- reserve(t, q, caller).account }()
			synctest.Wait()
		}
		for _, free := range []struct{ of, next string }{{"a", "c"}, {"a", "a"}, {"b", "b"}} {
			held[free.of][0].Release()
			held[free.of] = held[free.of][1:]
			if got := <-turns; got != free.next {
				t.Errorf("a unit of %s went to %s, want %s", free.of, got, free.next)
			}
		}
	})
}

func TestQueueForgetsACallerThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limit{Total: 1, Queue: 1})
		first := reserve(t, q, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		entered := make(chan *Reservation, 1)
		go func() { entered <- reserve(t, q, "a") }()
		synctest.Wait()
		if _, err := q.Wait(t.Context(), "a"); !isRefused(err) {
			t.Errorf("a second in a queue of one: got %v, want a refusal", err)
		}
		first.Release()
		first.Release() // a second time does nothing
		(<-entered).Release()
		empty(t, q)
	})
}

// Under concurrent load the numbers of slots and waiters stay within their limits, each
// waiter gets a slot or an error, and nothing is left at the end. Callers also give up at
// the moment in which they get a slot or are replaced in the queue.
func TestQueueUnderLoad(t *testing.T) {
	const slots, places = 3, 5
	q := New(Limit{Total: slots, Queue: places})
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			caller := fmt.Sprint(n % 4)
			for range 500 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Microsecond)
				unit, err := q.Wait(ctx, caller)
				if taken, waiting := q.Load(); taken > slots || waiting > places {
					t.Errorf("%d slots and %d places are in use", taken, waiting)
				}
				if err == nil {
					time.Sleep(time.Duration(random.IntN(20)) * time.Microsecond)
					unit.Release()
				} else if !isRefused(err) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				cancel()
			}
		})
	}
	all.Wait()
	empty(t, q)
}

// Random requests of several accounts, with every kind of limit. After each step:
//
//   - no account and no total is above its limit,
//   - a unit that was given to a waiter belongs to an account that used at most as much as any other
//     waiting account below its own limit (fairness),
//   - no waiter below its limit waits while a unit is free (no lost wake-up),
//   - a waiter whose context has ended has left the queue (cancellation).
func TestFairness(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := Limit{Total: int64(1 + random.IntN(5)), Each: int64(random.IntN(4)), Queue: random.IntN(12)}
		if random.IntN(3) == 0 {
			limit.Queue = Unbounded
		}
		synctest.Test(t, func(t *testing.T) { fairness(t, random, limit) })
	}
}

// waits is a waiter of fairness.
type waits struct {
	account string
	cancel  context.CancelFunc
	unit    *Reservation
	ended   bool // with an error
}

func fairness(t *testing.T, random *rand.Rand, limit Limit) {
	q := New(limit)
	var all []*waits
	step := func(what string, do func()) {
		waited := map[*waits]bool{}
		for _, w := range all {
			waited[w] = w.unit == nil && !w.ended
		}
		do()
		synctest.Wait()
		checkLimiter(t, q, what)
		for _, w := range all {
			if !waited[w] || w.unit == nil {
				continue
			}
			had := q.of[w.account].used - 1 // at most one unit was released, so at most one was given
			for other, u := range q.of {
				if len(u.waiters) > 0 && (limit.Each <= 0 || u.used < limit.Each) && u.used < had {
					t.Fatalf("%s: %s with %d units had a turn before %s with %d", what, w.account, had, other, u.used)
				}
			}
		}
	}
	for range 150 {
		switch n := random.IntN(10); {
		case n < 5:
			w := &waits{account: fmt.Sprint(random.IntN(4))}
			var ctx context.Context
			ctx, w.cancel = context.WithCancel(t.Context())
			step("arrives", func() {
				all = append(all, w)
				go func() {
					unit, err := q.Wait(ctx, w.account)
					w.unit, w.ended = unit, err != nil
				}()
			})
		case len(all) == 0:
		case n < 8:
			w := all[random.IntN(len(all))]
			step("releases", func() { w.unit.Release() })
			if w.unit != nil {
				all = slices.DeleteFunc(all, func(o *waits) bool { return o == w })
			}
		default:
			w := all[random.IntN(len(all))]
			step("gives up", w.cancel)
			if w.unit == nil && !w.ended {
				t.Fatal("a waiter that gave up still waits")
			}
		}
	}
	for _, w := range all {
		w.cancel()
		synctest.Wait()
		w.unit.Release()
	}
	empty(t, q)
}

// checkLimiter reports what is above a limit, and a free unit that a waiter could have.
func checkLimiter(t *testing.T, q *Limiter, what string) {
	t.Helper()
	var used int64
	waiting := 0
	for account, u := range q.of {
		used, waiting = used+u.used, waiting+len(u.waiters)
		if q.limit.Each > 0 && u.used > q.limit.Each {
			t.Fatalf("%s: %s uses %d units, want at most %d", what, account, u.used, q.limit.Each)
		}
		if len(u.waiters) > 0 && q.used < q.limit.Total && (q.limit.Each <= 0 || u.used < q.limit.Each) {
			t.Fatalf("%s: %s waits while %d of %d units are in use", what, account, q.used, q.limit.Total)
		}
	}
	if used != q.used || waiting != q.waiting || used > q.limit.Total ||
		q.limit.Queue != Unbounded && waiting > q.limit.Queue {
		t.Fatalf("%s: %d units and %d waiters, counted as %d and %d, of %+v", what, used, waiting, q.used, q.waiting,
			q.limit)
	}
}

// Take takes any number of units, up to the limit of the account and of all.
func TestTake(t *testing.T) {
	q := New(Limit{Resource: Requests, Total: 15, Each: 10})
	take := func(account string, n int64, want Reason) *Reservation {
		t.Helper()
		unit, err := q.Take(account, n)
		var refused *Refusal
		if errors.As(err, &refused); refused == nil && want != "" || refused != nil && refused.Reason != want {
			t.Errorf("%d units of %s: got %v, want %q", n, account, err, want)
		}
		return unit
	}
	first := take("ann", 7, "")
	for _, n := range []int64{4, 11, math.MaxInt64} {
		take("ann", n, OfAccount)
	}
	bob := take("bob", 5, "")
	take("bob", 4, OfAll)
	take("eve", 0, "").Release()
	if err := bob.Move("ann"); err == nil {
		t.Error("5 units were moved to an account with 7 of 10")
	}
	if err := bob.Move("eve"); err != nil || q.of["bob"] != nil || q.of["eve"].used != 5 {
		t.Errorf("moving units: %v, and %v are in use", err, q.of)
	}
	take("bob", 3, "").Release()
	first.Release()
	bob.Release()
	if err := bob.Move("ann"); err != nil {
		t.Errorf("moving released units: %v", err)
	}
	take("ann", 10, "").Release()
	empty(t, q)
}

// An account that asks too often is refused until time has passed. Others are not.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limit{Rate: 2, Burst: 3})
		for n := range 5 {
			unit, err := q.Take("ann", 1)
			if (err == nil) != (n < 3) {
				t.Errorf("request %d: got %v", n, err)
			}
			unit.Release()
		}
		if _, err := q.Take("bob", 1); err != nil {
			t.Errorf("another account: %v", err)
		}
		time.Sleep(500 * time.Millisecond)
		if _, err := q.Take("ann", 1); err != nil {
			t.Errorf("half a second later: %v", err)
		}
	})
}

// reserve waits for a unit.
func reserve(t *testing.T, q *Limiter, account string) *Reservation {
	unit, err := q.Wait(t.Context(), account)
	if err != nil {
		t.Error(err)
	}
	return unit
}

func isRefused(err error) bool {
	var refused *Refusal
	return errors.As(err, &refused)
}

// empty reports what is still in use of a limiter.
func empty(t *testing.T, q *Limiter) {
	t.Helper()
	if used, waiting := q.Load(); used != 0 || waiting != 0 || len(q.of) != 0 {
		t.Errorf("in the end: got %d units, %d waiters and %d accounts, want none", used, waiting, len(q.of))
	}
}

// Issue 23: an account whose work never ends cannot take the last unit from an account that has none.
func TestReservedUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(ForSandboxes(8, 32))
		var held []*Reservation
		for range 7 {
			r, err := q.Wait(t.Context(), "greedy")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, r)
		}
		more := make(chan *Reservation, 1)
		go func() {
			r, _ := q.Wait(t.Context(), "greedy")
			more <- r
		}()
		synctest.Wait()
		if used, waiting := q.Load(); used != 7 || waiting != 1 {
			t.Fatalf("got %d in use and %d waiters, want 7 and 1", used, waiting)
		}
		for range 3 { // one after the other
			other, err := q.Wait(t.Context(), "other")
			if err != nil {
				t.Fatal(err)
			}
			other.Release()
			synctest.Wait()
			if len(more) > 0 {
				t.Fatal("the greedy account got the reserved unit")
			}
		}
		held[0].Release()
		(<-more).Release()
		for _, r := range held {
			r.Release()
		}
		if used, waiting := q.Load(); used != 0 || waiting != 0 {
			t.Errorf("got %d in use and %d waiters at the end", used, waiting)
		}
	})
	if l := ForSandboxes(2, 0); l.Reserved != 0 {
		t.Errorf("of 2 sandboxes %d are reserved", l.Reserved)
	}
}
