package share

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func TestEachHoldsItsShareAndNoMore(t *testing.T) {
	s := New(10)
	first, ok := s.Take("ann", 7)
	if !ok {
		t.Fatal("got nothing of an unused share")
	}
	for _, n := range []int64{4, 11, math.MaxInt64} {
		if _, ok := s.Take("ann", n); ok {
			t.Errorf("got %d beside 7 of 10", n)
		}
	}
	second, ok := s.Take("ann", 3)
	if !ok {
		t.Error("got nothing of the rest")
	}
	if _, ok := s.Take("bob", 10); !ok {
		t.Error("what ann holds keeps bob from his own share")
	}
	first()
	first() // a second time is fine
	if _, ok := s.Take("ann", 8); ok {
		t.Error("releasing twice gave more than was held")
	}
	second()
	if got := len(s.held); got != 1 {
		t.Errorf("got %d who are remembered, want bob alone", got)
	}
}

// However many take and release at one time, no holder has more than a share, and nothing
// is remembered of who holds nothing.
func TestSharesHoldWhenManyTakeAtOnce(t *testing.T) {
	const most = 4
	s := New(most)
	var holding [3]atomic.Int64
	var all sync.WaitGroup
	for n := range 32 {
		all.Go(func() {
			mine := &holding[n%len(holding)]
			for range 500 {
				release, ok := s.Take(fmt.Sprint(n%len(holding)), 1)
				if !ok {
					continue
				}
				if now := mine.Add(1); now > most {
					t.Errorf("%d are held at one time, want at most %d", now, most)
				}
				mine.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if got := len(s.held); got != 0 {
		t.Errorf("got %d who are remembered, want none", got)
	}
}
