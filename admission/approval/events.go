package approval

import (
	"cmp"
	"slices"
)

// Waiting returns the questions of a run that are open, oldest first.
func (d *Desk) Waiting(runID string) []Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	var waiting []Question
	for _, o := range d.open {
		if o.question.RunID == runID && !o.decided {
			waiting = append(waiting, o.question)
		}
	}
	slices.SortFunc(waiting,
		func(a, b Question) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return waiting
}

// Event reports that a question of a desk was asked, escalated or closed.
type Event struct {
	Question Question
	Open     bool
	// HasChannel reports whether the session of an open question has a channel, such as its host.
	// Without one only the command line can answer.
	HasChannel bool
	// Escalated is set if an open question was escalated: the role that may answer now.
	Escalated string
	Outcome   string // a sentence; set if the question is closed
}

// subscriber is a registered callback.
type subscriber struct{ f func(Event) }

// Subscribe calls f for each question that is asked from now on and for its end, sequentially,
// until the returned function is called. f must not wait for the desk.
func (d *Desk) Subscribe(f func(Event)) (unsubscribe func()) {
	s := &subscriber{f}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.subscribers[s] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.subscribers, s)
	}
}

func (d *Desk) notify(e Event) {
	d.notifying.Lock()
	defer d.notifying.Unlock()
	d.mu.Lock()
	var current []*subscriber
	for s := range d.subscribers {
		current = append(current, s)
	}
	d.mu.Unlock()
	for _, s := range current {
		s.f(e)
	}
}
