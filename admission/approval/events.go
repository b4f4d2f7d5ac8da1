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
	slices.SortFunc(waiting, func(a, b Question) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return waiting
}

// Event says that a question of a desk was asked, or is over.
type Event struct {
	Question Question
	Open     bool
	// HasChannel says of an open question that its session has a channel, such as
	// its host; without one the command line alone can answer.
	HasChannel bool
	Outcome    string // in a sentence, of a question that is over
}

// subscriber is who is told of events.
type subscriber struct{ tell func(Event) }

// Subscribe has f told of each question that is asked from now on and of its
// end, one after the other, until the returned function is called. f must
// not wait for the desk.
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

func (d *Desk) tell(e Event) {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.mu.Lock()
	var told []*subscriber
	for s := range d.subscribers {
		told = append(told, s)
	}
	d.mu.Unlock()
	for _, s := range told {
		s.tell(e)
	}
}
