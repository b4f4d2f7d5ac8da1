package audit

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// settleAfter is how long records wait at most to be signed, and what was only
// noted for an append that makes it durable along.
const settleAfter = 50 * time.Millisecond

// committer writes the records of all callers. All who wait at one moment share one write and
// one sync. A caller that finds the log idle writes the batch itself, for handing it to another
// thread and back would cost more than most of the writing; what comes meanwhile is written by run.
type committer struct {
	courier *courier // nil without a witness

	turn     sync.Mutex // held while the appender is used; guards all down to settling and keeping
	appender *appender
	settle   *time.Timer
	keep     *time.Timer
	settling bool // settle runs: from the first record that waits, so that those after it do not put it off
	keeping  bool // likewise

	mu      sync.Mutex // guards all below
	waiting []request
	spare   []request // for waiting; empty
	writing bool      // a caller or run writes, or is about to
	closed  bool
	callers sync.WaitGroup // those that write themselves

	// crowded says that the newest batch had more than one record. Only then do others get a turn before the next:
	// for a record that stands alone, that would wake a thread which finds nothing to do.
	crowded atomic.Bool

	more chan struct{} // has room for one: batches are run's to write
	stop chan struct{} // closed when no more records come
	done chan struct{} // closed when run has ended
}

// request is one record on its way.
type request struct {
	record  Record
	durable bool
	answer  chan<- written // has room
}

// written is what became of a request.
type written struct {
	last uint64 // number of a record at or behind it
	err  error
}

func newCommitter(s *appender, courier *courier) *committer {
	c := &committer{
		appender: s, courier: courier, settle: time.NewTimer(time.Hour), keep: time.NewTimer(time.Hour),
		more: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	c.settle.Stop()
	c.keep.Stop()
	c.turn.Lock()
	c.arm() // for what the start has written
	c.turn.Unlock()
	go c.run()
	return c
}

// add hands a record over. When it returns, the answer has come or another goroutine
// is about to give it.
func (c *committer) add(r request) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.waiting = append(c.waiting, r)
	mine := !c.writing
	if mine {
		c.writing = true
		c.callers.Add(1)
	}
	c.mu.Unlock()
	if !mine {
		return nil
	}
	defer c.callers.Done()
	if c.crowded.Load() {
		runtime.Gosched() // others that have a record share the write
	}
	if c.writeBatch() {
		c.more <- struct{}{}
	}
	return nil
}

// writeBatch writes what waits, and reports whether more waits by then. If not, the next
// record is for its caller to write.
func (c *committer) writeBatch() (more bool) {
	c.mu.Lock()
	batch := c.waiting
	c.waiting, c.spare = c.spare, nil
	if len(batch) > maxBatch {
		c.waiting = append(c.waiting, batch[maxBatch:]...)
		clear(batch[maxBatch:])
		batch = batch[:maxBatch]
	}
	c.mu.Unlock()
	c.crowded.Store(len(batch) > 1)
	c.write(batch)
	clear(batch) // it is used again, and must not hold on to records
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(batch) <= 2*maxBatch {
		c.spare = batch[:0]
	}
	c.writing = len(c.waiting) > 0
	return c.writing
}

// write writes a batch and answers all of it.
func (c *committer) write(batch []request) {
	c.turn.Lock()
	defer c.turn.Unlock()
	noted := false
	err := c.appender.write(batch, func() {
		noted = true
		for _, r := range batch {
			if !r.durable {
				r.answer <- written{last: c.appender.end.next - 1}
			}
		}
	})
	for _, r := range batch {
		if r.durable || !noted {
			r.answer <- written{c.appender.end.next - 1, err}
		}
	}
	c.arm()
}

// arm starts the timers that are needed. Called with turn held.
func (c *committer) arm() {
	if c.appender.unsigned() && !c.settling {
		c.settling = true
		c.settle.Reset(settleAfter)
	}
	if c.appender.unkept() && !c.keeping {
		c.keeping = true
		c.keep.Reset(keepEvery)
	}
}

// run writes what callers do not write themselves, and signs behind them, until the log is closed.
func (c *committer) run() {
	defer close(c.done)
	for {
		select {
		case <-c.more:
			c.writeAll()
		case <-c.settle.C:
			c.flush(&c.settling, (*appender).unsigned)
		case <-c.keep.C:
			c.flush(&c.keeping, (*appender).unkept)
		case <-c.stop:
			select {
			case <-c.more:
				c.writeAll()
			default:
			}
			return
		}
	}
}

func (c *committer) writeAll() {
	for more := true; more; {
		runtime.Gosched() // as in add
		more = c.writeBatch()
	}
}

// flush signs what was written, where that is still needed, and makes the courier look
// for a new checkpoint. No caller waits for its error. A failed sync is remembered, and any
// other cause meets the next write.
func (c *committer) flush(running *bool, needed func(*appender) bool) {
	c.turn.Lock()
	*running = false
	if needed(c.appender) {
		_ = c.appender.flush()
	}
	c.arm()
	c.turn.Unlock()
	if c.courier != nil {
		c.courier.look()
	}
}

// close waits until all that was handed over is written; after it add fails. It reports whether
// the log was closed already.
func (c *committer) close() (already bool) {
	c.mu.Lock()
	already = c.closed
	c.closed = true
	c.mu.Unlock()
	if !already {
		c.callers.Wait()
		close(c.stop)
	}
	<-c.done
	return already
}
