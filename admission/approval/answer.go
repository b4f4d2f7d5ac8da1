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
	ForRun  bool   // extends an approval to the same tool's further calls in the run
	Reason  string // of a refusal, in the person's words, for the caller; may be empty
	By      string // the person and the channel: "ann, console"
	// Approver is the caller who answers with a credential, see Verdict.Approver.
	Approver *caller.Caller
}

// maxReason is the maximum length of a reason in characters. Longer ones are cut.
const maxReason = 500

var (
	// ErrChanged is returned if an answer is not for the question that is open.
	ErrChanged = errors.New("the answer is to another question, or to one that was changed after it was asked")
	// ErrNeedsValues is returned if a server's form has to be filled in, which only the host can
	// do.
	ErrNeedsValues = errors.New(
		"the server's form has to be filled in, which the agent's host does; it can be refused here")
)

// Answer answers an open question. Only the first answer counts; later ones get ErrClosed with the
// name of the person who was faster. The answer applies to the question with the given digest.
func (d *Desk) Answer(r Response) error {
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
	case r.Approve && o.question.Elicitation != nil && o.question.Elicitation.NeedsValues:
		return ErrNeedsValues
	}
	v := Verdict{By: r.By, Approver: r.Approver}
	if r.Approve {
		v.Answer, v.ForRun = Yes, r.ForRun && o.question.Elicitation == nil
	} else {
		v.Reason = truncate.Characters(visible.Line(strings.TrimSpace(r.Reason)), maxReason)
	}
	d.decideLocked(o, v)
	return nil
}

func closedError(detail string) error { return detailed{ErrClosed, detail} }

// outcome returns a sentence that describes how a question was answered.
func (o *openQuestion) outcome() string {
	return "the question was answered already: " + o.verdict.String()
}

// Posted returns the open questions of this process, oldest first.
func (d *Desk) Posted() []Posted {
	d.mu.Lock()
	defer d.mu.Unlock()
	var open []Posted
	for _, o := range d.open {
		if !o.decided {
			open = append(open, Posted{o.question, o.digest})
		}
	}
	slices.SortFunc(open, func(a, b Posted) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return open
}

// Find returns an open question of this process. Otherwise the error is ErrClosed with the outcome,
// and asking describes who asked, if the desk remembers it.
func (d *Desk) Find(id string) (q Posted, asking Asking, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.open[id]; o != nil {
		if o.decided {
			return Posted{}, o.question.Asking, closedError(o.outcome())
		}
		return Posted{o.question, o.digest}, o.question.Asking, nil
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
