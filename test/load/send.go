package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// atOnce bounds the requests that wait for their answers; the next waits for one of them.
const atOnce = 500

// tally counts the results of requests.
type tally struct {
	answered, busy int
	wrong          int // the answer is not that of the request
	lost           int // no answer
	problems       []string
	took           []time.Duration // of those that were answered
	lasted         time.Duration   // from the first request to the last answer
}

func (t *tally) sent() int { return t.answered + t.busy + t.wrong + t.lost }

func (t *tally) String() string {
	slices.Sort(t.took)
	quantile := func(share float64) time.Duration {
		if len(t.took) == 0 {
			return 0
		}
		return t.took[min(len(t.took)-1, int(share*float64(len(t.took))))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%d requests in %.1f s (%.0f a second): %d answered, %d told to come back, %d wrong, %d lost; "+
		"p50 %v, p95 %v, p99 %v",
		t.sent(), t.lasted.Seconds(), float64(t.sent())/t.lasted.Seconds(), t.answered, t.busy, t.wrong, t.lost,
		quantile(.5), quantile(.95), quantile(.99))
}

// send has the callers ask at a rate, whether or not what was asked before is answered.
func send(ctx context.Context, callers []*caller, rate int, duration time.Duration) *tally {
	var all sync.WaitGroup
	var mu sync.Mutex // guards got
	got := &tally{}
	room := make(chan struct{}, atOnce)
	began := time.Now()
	for n := 0; ctx.Err() == nil && time.Since(began) < duration; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))))
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			asked := time.Now()
			err := ask(ctx, callers, n)
			took := time.Since(asked)
			mu.Lock()
			defer mu.Unlock()
			var wrong *wrongError
			switch {
			case err == nil:
				got.answered++
				got.took = append(got.took, took)
				return
			case errors.Is(err, errBusy):
				got.busy++
				return
			case errors.As(err, &wrong):
				got.wrong++
			default:
				got.lost++
			}
			if len(got.problems) < 5 {
				got.problems = append(got.problems, err.Error())
			}
		})
	}
	all.Wait()
	got.lasted = time.Since(began)
	return got
}

// wrongError reports an answer that does not belong to its request.
type wrongError struct{ problem string }

func (e *wrongError) Error() string { return e.problem }

// ask sends the request of a number and looks at the answer: a search, a look at the
// caller's own run, and at that of another, which the caller must not see.
func ask(ctx context.Context, callers []*caller, n int) error {
	c, other := callers[n%len(callers)], callers[(n+1)%len(callers)]
	id := fmt.Sprintf("%s/%d", c.name, n)
	tool, arguments, want := "search_tools", map[string]any{"query": "read a file"}, ""
	switch n / len(callers) % 3 {
	case 1:
		tool, arguments, want = "get_run", map[string]any{"run_id": c.run}, c.name
	case 2:
		if other != c {
			tool, arguments, want = "get_run", map[string]any{"run_id": other.run}, "There is no such run"
		}
	}
	answer, err := c.call(ctx, id, tool, arguments)
	if err != nil {
		return err
	}
	if !strings.Contains(answer.text(), want) || other != c && strings.Contains(answer.text(), other.name) {
		return &wrongError{fmt.Sprintf("%s of %s %v: got %.200q, want %q", tool, c.name, arguments, answer.text(),
			want)}
	}
	return nil
}
