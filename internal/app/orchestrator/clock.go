package orchestrator

import (
	"sync"
	"time"
)

// clock is the time limit of one run. It stands still while the run waits for
// a person's decision.
type clock struct {
	expired chan struct{}

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration // when the clock was last set going
	since   time.Time     // when that was
	halted  bool          // it stands still
	stopped bool          // for ever
}

// startClock returns a running clock that closes expired after limit.
func startClock(limit time.Duration) *clock {
	c := &clock{expired: make(chan struct{}), left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, sync.OnceFunc(func() { close(c.expired) }))
	return c
}

// halt makes the clock stand still, or go on with what was left.
func (c *clock) halt(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.halted == still {
		return
	}
	c.halted = still
	if still {
		c.timer.Stop()
		c.left -= time.Since(c.since)
		return
	}
	c.since = time.Now()
	c.timer.Reset(max(c.left, 0)) // firing twice is once: see startClock
}

// stop releases the timer. The clock then never expires.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}
