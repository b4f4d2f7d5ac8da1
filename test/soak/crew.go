package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// crew are the hosts that ask the daemon. A job takes a host that is free.
type crew struct {
	free  chan *host
	hosts []*host
	next  atomic.Int64 // the number of the next job

	mu     sync.Mutex
	errors []error // the first few wrong answers
	failed int
}

// maxErrors is the number of wrong answers that are described.
const maxErrors = 10

func newCrew(d *daemon, n int) *crew {
	c := &crew{free: make(chan *host, n)}
	for range n {
		h := &host{d: d}
		c.hosts = append(c.hosts, h)
		c.free <- h
	}
	return c
}

// close ends all sessions. Nothing may be under way.
func (c *crew) close() error {
	var errs []error
	for _, h := range c.hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// wrong returns what was wrong with answers.
func (c *crew) wrong() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == 0 {
		return nil
	}
	return append([]error{fmt.Errorf("%d answers were wrong; the first of them follow", c.failed)}, c.errors...)
}

// one has the next job done by a host, and reports whether it was done.
func (c *crew) one(ctx context.Context, h *host) (done bool) {
	j := jobs(int(c.next.Add(1)))
	err := h.give(ctx, j)
	if err == nil || ctx.Err() != nil {
		return err == nil
	}
	if !errors.Is(err, errBusy) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed++
		if len(c.errors) < maxErrors {
			c.errors = append(c.errors, fmt.Errorf("%s in %s: %w", j.kind, j.language, err))
		}
	}
	return false
}

// highestRate is how many jobs are done in a second when each host gives the next as
// soon as it has the answer. A quarter of the time, in which caches fill, comes before.
func (c *crew) highestRate(ctx context.Context, length time.Duration) (float64, error) {
	began := time.Now()
	var done atomic.Int64
	var all sync.WaitGroup
	for _, h := range c.hosts {
		all.Go(func() {
			for ctx.Err() == nil && time.Since(began) < length*5/4 {
				if c.one(ctx, h) && time.Since(began) >= length/4 {
					done.Add(1)
				}
			}
		})
	}
	all.Wait()
	elapsed := time.Since(began) - length/4
	if done.Load() == 0 {
		return 0, errors.Join(append(c.wrong(), ctx.Err(), errors.New("no job was done"))...)
	}
	return float64(done.Load()) / elapsed.Seconds(), nil
}

// work starts jobs at a fixed rate, independent of the duration of answers, and measures
// each from the time at which it was due.
func (c *crew) work(ctx context.Context, rate float64, length time.Duration, d *daemon, r *report) error {
	working, stop := context.WithTimeout(ctx, length)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { compare(working, r) })
	all.Go(func() { watch(working, d, r) })
	began := time.Now()
	for n := 0; working.Err() == nil; n++ {
		due := began.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		if pause(working, time.Until(due)) != nil {
			break
		}
		select {
		case h := <-c.free: // else all are busy, and the next job is late, which its time shows
			all.Go(func() {
				defer func() { c.free <- h }()
				done := c.one(ctx, h)
				r.answered(time.Since(began), time.Since(due), done)
			})
		case <-working.Done():
		}
	}
	all.Wait()
	return ctx.Err()
}

// compare repeatedly starts a program that does nothing. Its duration shows the state of
// this machine, independent of the daemon.
func compare(ctx context.Context, r *report) {
	began := time.Now()
	for pause(ctx, 500*time.Millisecond) == nil {
		started := time.Now()
		if exec.CommandContext(ctx, "true").Run() == nil {
			r.compared(time.Since(began), time.Since(started))
		}
	}
}

// watch looks at what the daemon uses.
func watch(ctx context.Context, d *daemon, r *report) {
	began := time.Now()
	for pause(ctx, sampling) == nil {
		if u, err := d.usage(); err == nil { // else it ends, which the jobs notice
			r.used(time.Since(began), u)
		}
	}
}
