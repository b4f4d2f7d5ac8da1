package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// sample is measurements of one thing, in one unit.
type sample []float64

// quantile returns the smallest measurement that the given share of all does
// not exceed (the nearest rank).
func (s sample) quantile(share float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timed measures how long f takes, in milliseconds.
func timed(f func() error) (sample, error) {
	started := time.Now()
	err := f()
	return sample{milliseconds(time.Since(started))}, err
}

// way is one way to do what is measured.
type way struct {
	name string
	take func(context.Context) (sample, error) // one measurement, or a few
	// every makes a slow variant take part in one of so many rounds; 0 means all.
	every int
}

// warmUps is how often each way is taken before it counts.
const warmUps = 3

// roundPause is the pause between two runs, in which the pool is refilled and the last run
// is cleaned up.
const roundPause = 200 * time.Millisecond

// inTurn takes the ways in turn, so that all meet the same machine, in an order
// that is drawn anew for each round, so that none always follows the same other.
func inTurn(ctx context.Context, rounds int, pause time.Duration, ways ...way) (map[string]sample, error) {
	taken := map[string]sample{}
	order := rand.New(rand.NewPCG(1, 2))
	for round := -warmUps; round < rounds; round++ {
		for _, i := range order.Perm(len(ways)) {
			w := ways[i]
			if round > 0 && w.every > 0 && round%w.every != 0 {
				continue
			}
			got, err := w.take(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if round >= 0 {
				taken[w.name] = append(taken[w.name], got...)
			}
			if err := rest(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
	return taken, nil
}

// rest waits, unless the whole measurement ends.
func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}
