package audit

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// settleAfter is the maximum time until records are signed, and until records of Note are made
// durable if no Append does it earlier.
const settleAfter = 50 * time.Millisecond

// soonAfter is the maximum time until a record of NoteSoon is written, if no other record is before it.
const soonAfter = 5 * time.Millisecond

// committer writes the records of all callers and makes them durable. All waiting callers share one
// write, and all completed writes share one sync; during a sync, further records are written.
//
// If the committer is idle, the caller writes and syncs itself, because switching to another
// goroutine would cost more than most of the writing. Records that arrive during a write are
// written by one of their callers, and records that are written during a sync are synced by run.
type committer struct {
	witnesses submitters

	turn     sync.Mutex // held while the appender is used, except its disk; guards the fields up to keep
	appender *appender
	settle   timer // until records are signed
	keep     timer // until a checkpoint is kept

	mu       sync.Mutex // guards all below
	queue    queue      // to be written
	soon     timer      // runs while records without a caller are in the queue
	broken   error      // of the newest write
	unsynced []request  // written, and waiting to be durable
	writing  bool       // a caller or run writes, or is about to
	syncing  bool       // a caller or run makes records durable, and then looks at waiting
	closed   bool
	finished chan struct{} // closed when the log is closed and nothing is waiting

	// crowded reports that more than one caller waited for the newest batch. Only then does the
	// committer yield before the next one: for a single caller, that would wake an idle thread.
	crowded atomic.Bool

	more chan struct{} // capacity 1; signals run that a sync is due
	stop chan struct{} // closed after the last record
	done chan struct{} // closed when run has ended
}

// timer runs from the first record that waits on, so that those after it do not put it off.
type timer struct {
	*time.Timer
	running bool
}

func newTimer() timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return timer{Timer: t}
}

// start has the timer go off after a time, unless it runs.
func (t *timer) start(after time.Duration) {
	if !t.running {
		t.running = true
		t.Reset(after)
	}
}

func newCommitter(s *appender, witnesses submitters) *committer {
	c := &committer{
		appender: s, witnesses: witnesses, settle: newTimer(), keep: newTimer(),
		soon: newTimer(), finished: make(chan struct{}), more: make(chan struct{}, 1), stop: make(chan struct{}),
		done: make(chan struct{}),
	}
	s.index = startIndexer(s.places.dir, s.files.active.Name())
	c.turn.Lock()
	c.arm() // for what the start has written
	c.turn.Unlock()
	go c.run()
	return c
}

// add passes a record to the committer and returns its result.
func (c *committer) add(r Record, durable bool) written {
	answer := make(chan written, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return written{err: ErrClosed}
	}
	c.queue.add(request{r, durable, answer})
	mine := !c.writing && !(durable && c.syncing)
	c.writing = c.writing || mine
	c.mu.Unlock()
	if mine {
		if c.crowded.Load() {
			runtime.Gosched() // others that have a record share the write
		}
		c.lead(durable)
	}
	got := <-answer
	if got.lead {
		c.lead(durable)
		got = <-answer
	}
	return got
}

// addSoon passes a record to the committer without waiting for it. If the newest write failed, it returns the error.
func (c *committer) addSoon(r Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.queue.add(request{record: r})
	c.soon.start(soonAfter)
	return c.broken
}

// lead writes all waiting records for a caller that found the committer idle. If durable is
// set and no sync is running, it also syncs.
func (c *committer) lead(durable bool) {
	if !c.writeBatch() {
		return
	}
	if !durable || c.syncBatch() {
		c.more <- struct{}{}
	}
}

// writeBatch writes a batch of waiting records and leaves the next batch to one of its waiting
// callers. It reports whether its caller must make the records durable.
func (c *committer) writeBatch() (mine bool) {
	c.mu.Lock()
	batch, callers := c.queue.take()
	c.mu.Unlock()
	c.crowded.Store(callers > 1)
	err := c.write(batch)
	for _, r := range batch {
		if r.awaited() && (!r.durable || err != nil) {
			r.answer <- written{err: err}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = err
	for _, r := range batch {
		if r.durable && err == nil {
			c.unsynced = append(c.unsynced, r)
		}
	}
	c.queue.reuse(batch)
	if c.queue.behind > 0 {
		c.soon.start(soonAfter)
	}
	mine = !c.syncing && len(c.unsynced) > 0
	c.syncing = c.syncing || mine
	// Durable records that arrive during a sync are written by run, which then syncs them, unless
	// a note is waiting: then they are written with it.
	c.writing = c.queue.callers() > 0 && !(c.syncing && c.queue.notes == 0)
	if c.writing {
		c.queue.first().answer <- written{lead: true}
	}
	c.endLocked()
	return mine
}

// write writes a batch and schedules its signature.
func (c *committer) write(batch []request) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	defer c.arm()
	return c.appender.write(batch)
}

// syncBatch makes the written records durable, and reports whether further records are waiting
// for a sync after it.
func (c *committer) syncBatch() (more bool) {
	c.mu.Lock()
	batch := c.unsynced
	c.unsynced = nil
	c.mu.Unlock()
	if len(batch) > 0 {
		got := c.sync()
		for _, r := range batch {
			r.answer <- got
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.syncing = len(c.unsynced) > 0 || c.queue.callers() > 0 && !c.writing
	c.endLocked()
	return c.syncing
}

// sync makes the written records durable. If each call waits for a witness, it also signs them.
func (c *committer) sync() written {
	if !c.appender.opts.strict() {
		return written{err: c.appender.disk.sync()}
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	err := c.appender.checkpoint()
	return written{last: c.appender.end.next - 1, err: err}
}

// arm starts the timers that are needed. The caller must hold c.turn.
func (c *committer) arm() {
	if c.appender.unsigned() {
		c.settle.start(settleAfter)
	}
	if c.appender.unkept() {
		c.keep.start(keepEvery)
	}
}

// run syncs records that are not synced by callers, and signs records, until the log is closed.
func (c *committer) run() {
	defer close(c.done)
	for {
		select {
		case <-c.more:
			c.goOn()
		case <-c.soon.C:
			c.writeBehind()
		case <-c.settle.C:
			c.flush(&c.settle, (*appender).unsigned)
		case <-c.keep.C:
			c.flush(&c.keep, (*appender).unkept)
			c.appender.index.wake()
		case <-c.stop:
			c.appender.index.close()
			return
		}
	}
}

// goOn writes waiting records if no caller does, and makes all written records durable.
func (c *committer) goOn() {
	runtime.Gosched() // as in add
	c.mu.Lock()
	mine := len(c.queue.waiting) > 0 && !c.writing
	c.writing = c.writing || mine
	c.mu.Unlock()
	if mine {
		c.writeBatch()
	}
	if c.syncBatch() {
		c.more <- struct{}{}
	}
}

// writeBehind writes the records that no caller waits for, if no caller writes.
func (c *committer) writeBehind() {
	c.mu.Lock()
	c.soon.running = false
	mine := c.queue.behind > 0 && !c.writing
	c.writing = c.writing || mine
	c.mu.Unlock()
	if mine {
		c.lead(true)
	}
}

// flush signs written records if still needed, and notifies the submitter of a new checkpoint.
// It returns no error: a failed sync is stored, and other errors occur again at the next write.
func (c *committer) flush(t *timer, needed func(*appender) bool) {
	_ = c.appender.disk.sync() // most of the waiting, while others write
	c.turn.Lock()
	t.running = false
	if needed(c.appender) {
		_ = c.appender.flush()
	}
	c.arm()
	c.turn.Unlock()
	c.witnesses.look()
}

// endLocked closes finished if the log is closed and nothing is left to do.
func (c *committer) endLocked() {
	if c.closed && !c.writing && !c.syncing && c.queue.behind == 0 {
		close(c.finished)
	}
}

// close waits until all added records are written. After it, add fails. It reports whether the
// log was already closed.
func (c *committer) close() (already bool) {
	c.mu.Lock()
	already = c.closed
	c.closed = true
	if !already {
		c.endLocked()
	}
	c.mu.Unlock()
	if !already {
		<-c.finished
		close(c.stop)
	}
	<-c.done
	return already
}
