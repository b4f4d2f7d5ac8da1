package approval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Response is a person's answer given inside this process, which has authenticated the person.
type Response struct {
	ID      string // of the question
	Digest  string // of the question as shown to the person: Posted.Digest
	Approve bool
	For     Extent // of an approval
	Reason  string // of a refusal, in the person's words, for the caller; may be empty
	By      string // the person and the channel: "ann, console"
	Person  Person
	// Approver is the caller who answers, see Verdict.Approvers.
	Approver *caller.Caller
}

// maxReason is the maximum length of a reason in characters. Longer ones are cut.
const maxReason = 500

var (
	// ErrChanged is returned if an answer is not for the question that is open.
	ErrChanged = errors.New("the answer is to another question, or to one that was changed after it was asked")
	// ErrNeedsValues is returned for a yes to a question that only the host can ask.
	ErrNeedsValues = errors.New(
		"a form has to be filled in or a page opened, which the agent's host does; it can be refused here")
)

// Answer answers an open question, in a cluster also one of another node. Only the first answer counts; later ones get
// ErrClosed with the name of the person who was faster. The answer applies to the question with the given digest.
func (d *Desk) Answer(r Response) error {
	if s := d.shared.Load(); s != nil && !d.knows(r.ID) {
		return s.answer(r)
	}
	return d.answerLocal(r)
}

// knows reports whether a question was asked by this process.
func (d *Desk) knows(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, wasOpen := d.closed[id]
	return wasOpen || d.open[id] != nil
}

// answerLocal answers an open question of this process.
func (d *Desk) answerLocal(r Response) error {
	d.dropLost(r.ID)
	own := d.ownAnswer(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.open[r.ID]
	switch {
	case o == nil:
		return closedError(cmp.Or(d.closed[r.ID].outcome, "the question is not open"))
	case o.decided:
		return closedError(o.outcome())
	case r.Digest != o.digest:
		return ErrChanged
	case r.Approve && o.question.Elicitation.isForHost():
		return ErrNeedsValues
	case own != nil:
		return own
	}
	if r.Approve {
		return d.agreeLocked(o, agreement{r.Person, r.By, r.Approver, r.For})
	}
	d.decideLocked(o, Verdict{By: r.By, Reason: reason(r.Reason)})
	return nil
}

// ownAnswer is OwnCheck for a Yes to an open question.
func (d *Desk) ownAnswer(r Response) error {
	d.mu.Lock()
	o := d.open[r.ID]
	d.mu.Unlock()
	if o == nil || !r.Approve || r.Approver == nil {
		return nil
	}
	return d.OwnCheck(*r.Approver, o.question.Asking)
}

// reason returns the reason of a refusal as the caller sees it.
func reason(text string) string {
	return truncate.Characters(visible.Line(strings.TrimSpace(text)), maxReason)
}

func closedError(detail string) error { return detailed{ErrClosed, detail} }

// outcome returns a sentence that describes how a question was answered.
func (o *openQuestion) outcome() string {
	return "the question was answered already: " + o.verdict.String()
}

// Posted returns the open questions of this process, and in a cluster of all nodes, oldest first.
func (d *Desk) Posted() []Posted {
	open := d.posted()
	if s := d.shared.Load(); s != nil {
		open = append(open, s.list()...)
	}
	sortPosted(open)
	return open
}

func sortPosted(list []Posted) {
	slices.SortFunc(list, func(a, b Posted) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
}

// Elsewhere returns the open questions of the other nodes of a cluster. Reply takes answers to them as to those of this
// process, which passes them on.
func (d *Desk) Elsewhere() []Posted {
	s := d.shared.Load()
	if s == nil {
		return nil
	}
	open := s.list()
	for i := range open {
		open[i].Desk = d.listener.name
	}
	return open
}

func (o *openQuestion) posted() Posted {
	return Posted{Question: o.question, Digest: o.digest, Progress: o.progress(), Escalated: o.escalated}
}

// posted returns the open questions of this process.
func (d *Desk) posted() (open []Posted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.open {
		if !o.decided {
			open = append(open, o.posted())
		}
	}
	return open
}

// outcomeOf returns a sentence about the end of a question of this process.
func (d *Desk) outcomeOf(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.open[id]; o != nil {
		return o.outcome()
	}
	return cmp.Or(d.closed[id].outcome, "the question is not open")
}

// Find returns an open question, in a cluster also one of another node. Otherwise the error is ErrClosed with the
// outcome, and asking describes who asked, if the desk remembers it.
func (d *Desk) Find(id string) (q Posted, asking Asking, err error) {
	if s := d.shared.Load(); s != nil && !d.knows(id) {
		return s.find(id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.open[id]; o != nil {
		if o.decided {
			return Posted{}, o.asking(), closedError(o.outcome())
		}
		return o.posted(), o.asking(), nil
	}
	was, ok := d.closed[id]
	if !ok {
		return Posted{}, Asking{}, fmt.Errorf("finding question %q: %w", id, ErrClosed)
	}
	return Posted{}, was.asking, closedError(was.outcome)
}

// closedQuestion is the record of a question that was open.
type closedQuestion struct {
	asking  Asking
	outcome string // in a sentence
}
