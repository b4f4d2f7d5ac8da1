package audit

import "slices"

// queue holds records that are to be written, in the order in which they are written.
type queue struct {
	waiting []request
	notes   int       // how many of waiting need not be durable, and have a caller that waits
	behind  int       // how many of waiting have no caller that waits
	spare   []request // for waiting; empty
}

// request is one record on its way.
type request struct {
	record  Record
	durable bool
	answer  chan<- written // buffered; nil if no caller waits
}

// written is the result of a request.
type written struct {
	last uint64 // number of a record at or behind it
	err  error
	lead bool // not a result: the caller must call lead and then continue to wait
}

// awaited reports whether a caller waits for the result.
func (r request) awaited() bool { return r.answer != nil }

// count adds n to the counter of the request's kind, if it has one.
func (q *queue) count(r request, n int) {
	switch {
	case !r.awaited():
		q.behind += n
	case !r.durable:
		q.notes += n
	}
}

func (q *queue) add(r request) {
	q.waiting = append(q.waiting, r)
	q.count(r, 1)
}

// callers returns how many callers wait.
func (q *queue) callers() int { return len(q.waiting) - q.behind }

// first returns the request of the caller that has waited longest. There must be one.
func (q *queue) first() request { return q.waiting[slices.IndexFunc(q.waiting, request.awaited)] }

// take removes the next batch, and returns it with the number of callers that wait for it.
func (q *queue) take() (batch []request, callers int) {
	callers = q.callers()
	batch = q.waiting
	q.waiting, q.spare = q.spare, nil
	if len(batch) > maxBatch {
		q.waiting = append(q.waiting, batch[maxBatch:]...)
		clear(batch[maxBatch:])
		batch = batch[:maxBatch]
	}
	for _, r := range batch {
		q.count(r, -1)
	}
	return batch, callers - q.callers()
}

// reuse gives back a batch, whose slice is reused and must not retain records.
func (q *queue) reuse(batch []request) {
	clear(batch)
	if cap(batch) <= 2*maxBatch {
		q.spare = batch[:0]
	}
}
