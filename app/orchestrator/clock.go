package orchestrator

import (
	"sync"
	"time"
)

// watchInterval is how often a paused clock checks the processor time of the sandbox.
const watchInterval = 250 * time.Millisecond

// clock is the time limit of one run. While the run waits for a person's decision, only the
// processor time of its sandbox counts.
type clock struct {
	expired chan struct{}
	expire  func() // closes expired, once
	worked  func() time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration // when the clock was last set going, or paused
	since   time.Time     // when it was set going
	before  time.Duration // processor time when it was paused
	paused  bool          // see pause
	stopped bool          // it never expires
}

// startClock returns a running clock that closes expired after limit. worked
// returns the processor time that the sandbox has taken so far.
func startClock(limit time.Duration, worked func() time.Duration) *clock {
	expired := make(chan struct{})
	c := &clock{
		expired: expired, expire: sync.OnceFunc(func() { close(expired) }), worked: worked,
		left: limit, since: time.Now(),
	}
	c.timer = time.AfterFunc(limit, c.tick)
	return c
}

// tick is called when the time is over, and now and then while the clock is paused.
func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopped:
	case c.paused && c.worked()-c.before < c.left:
		c.timer.Reset(watchInterval)
	case !c.paused && time.Since(c.since) < c.left:
		// A tick from before the clock went on: its own is set already.
	default:
		c.expire()
	}
}

// pause pauses the clock, or resumes it with the remaining time.
func (c *clock) pause(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.paused == on {
		return
	}
	c.paused = on
	if on {
		c.left -= time.Since(c.since)
		c.before = c.worked()
		c.timer.Reset(watchInterval)
		return
	}
	c.left -= c.worked() - c.before
	c.since = time.Now()
	c.timer.Reset(max(c.left, 0))
}

// remaining returns the time that is left.
func (c *clock) remaining() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return c.left - (c.worked() - c.before)
	}
	return c.left - time.Since(c.since)
}

// stop releases the timer. The clock then never expires.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}
