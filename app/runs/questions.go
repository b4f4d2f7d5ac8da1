package runs

import (
	"context"
	"sync"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/broker"
)

// Questions passes the questions of all runs from the broker to the approver that asks people, and
// notifies the registry when they are opened and closed. Its methods may be
// called concurrently.
type Questions struct {
	next broker.Approver

	mu   sync.Mutex // guards note
	note func(q approval.Question, open bool)
}

var _ broker.HostAsker = (*Questions)(nil)

// NewQuestions returns a Questions that passes questions to next.
func NewQuestions(next broker.Approver) *Questions { return &Questions{next: next} }

// Ask asks people and returns their answer. A run has the question while it can be answered.
func (q *Questions) Ask(ctx context.Context, question approval.Question) (approval.Verdict, error) {
	open := false
	defer func() {
		if open {
			q.changed(&question, false)
		}
	}()
	return q.next.Ask(approval.WithOpened(ctx, func() {
		open = true
		q.changed(&question, true)
	}), question)
}

// AsksHost reports whether the host of a session asks its people.
func (q *Questions) AsksHost(sessionID string) bool {
	host, ok := q.next.(broker.HostAsker)
	return ok && host.AsksHost(sessionID)
}

func (q *Questions) changed(question *approval.Question, open bool) {
	q.mu.Lock()
	note := q.note
	q.mu.Unlock()
	if note != nil {
		note(*question, open)
	}
}

// follow registers a function that is called when a question is asked, and when
// it is no longer open.
func (q *Questions) follow(note func(q approval.Question, open bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.note = note
}

// noteQuestion passes a question to its run, without the code, which the run has.
func (r *Registry) noteQuestion(q approval.Question, open bool) {
	q.Code = ""
	if q.Elicitation != nil { // the model must not see what a server asks its user
		q.Arguments, q.Elicitation = nil, nil
	}
	r.mu.Lock()
	run, ok := r.runs[q.RunID]
	r.mu.Unlock()
	if ok {
		run.ask(q, open)
	}
}
