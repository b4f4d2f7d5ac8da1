package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// How the sustained rate is measured: so many ask at a time, in turns whose
// head, which a full pool makes easy, does not count.
const (
	asking  = 4
	head    = time.Second
	counted = 2 * time.Second
)

// measureRate counts fresh sandboxes in a second, as fast as they can be had,
// in turn with `runsc run` in as many loops.
func measureRate(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	airlock, err := b.openFace(ctx, pooled(asking), &undo)
	if err != nil {
		return err
	}
	python := languages()[0]
	bundle, err := b.openBundle(python, &undo)
	if err != nil {
		return err
	}
	var rates, besides, waits sample
	for range max(b.rounds/seldom, 1) {
		for _, side := range []struct {
			take         func(context.Context) (sample, error)
			rates, waits *sample
		}{{airlock.trivialRun(python), &rates, &waits}, {bundle.run, &besides, new(sample)}} {
			got, err := loops(ctx, side.take)
			if err != nil {
				return err
			}
			*side.rates = append(*side.rates, float64(len(got))/counted.Seconds())
			*side.waits = append(*side.waits, got...)
			if err := rest(ctx, roundPause); err != nil {
				return err
			}
		}
	}
	b.table.add(newRates(ofRunsc(python)+" in four loops", "/s", besides),
		newRates("fresh Python sandboxes through MCP, four asked for at a time", "/s", rates).aims("≥ 40").times(
			besides, "`runsc run`"),
		newRow("how long each of them took", "ms", waits))
	return nil
}

// loops do something as often as they can for a while, and return what was
// measured of each time that ended after the head and before the end.
func loops(ctx context.Context, take func(context.Context) (sample, error)) (sample, error) {
	began := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex // guards both
	var taken sample
	var failed error
	for range asking {
		all.Go(func() {
			for time.Since(began) < head+counted {
				got, err := take(ctx)
				ended := time.Since(began)
				mu.Lock()
				failed = errors.Join(failed, err)
				if ended >= head && ended < head+counted {
					taken = append(taken, got...)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return taken, failed
}
