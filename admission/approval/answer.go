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

// Response is a person's answer that was given within this process, which has proved
// who the person is.
type Response struct {
	ID      string // of the question
	Digest  string // of the question as the person saw it: Posted.Digest
	Approve bool
	ForRun  bool   // extends an approval to the same tool's further calls in the run
	Reason  string // of a refusal, in the person's words, for who made the call; may be empty
	By      string // who answers, and through what: "ann, console"
	// Approver is the caller who answers with a credential, see Verdict.Approver.
	Approver *caller.Caller
}

// maxReason is how many characters of a reason are handed on.
const maxReason = 500

var (
	// ErrChanged says that an answer is to another question than the one that is open.
	ErrChanged = errors.New("the answer is to another question, or to one that was changed after it was asked")
	// ErrNeedsValues says that a server's form has to be filled in, which takes the host.
	ErrNeedsValues = errors.New("the server's form has to be filled in, which the agent's host does; it can be refused here")
)

// Answer gives an open question its answer, once: of several the first counts, and
// the others get ErrClosed with who was faster. It holds for the question exactly as the
// digest says.
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

// outcome says in a sentence how a question was answered.
func (o *openQuestion) outcome() string {
	return "the question was answered already: " + o.verdict.String()
}

// Posted returns the questions of this process that wait for an answer, oldest first.
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

// Find returns a question of this process that waits for an answer. Else the error is
// ErrClosed with what became of it, and asking, who asked, where that is remembered.
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

// closedQuestion is what a desk remembers of a question that was open.
type closedQuestion struct {
	asking  Asking
	outcome string // in a sentence
}
