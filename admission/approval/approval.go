// Package approval asks people whether a call may happen, and keeps their answers. An answer is
// bound to exactly the question that was shown. It counts once, expires, and never comes from the
// model or its code.
package approval

import (
	"context"
	"errors"
	"slices"
)

// State is the progress of a call's, or a run's, approval. Its values are those of approval_state
// in a run's envelope.
type State string

// The states, from the least to the most restrictive.
const (
	NotRequired State = "NOT_REQUIRED"
	Approved    State = "APPROVED"
	Pending     State = "PENDING"
	Denied      State = "DENIED"
)

// order ranks the states by how restrictive they are.
var order = []State{NotRequired, Approved, Pending, Denied}

// Worse returns the more restrictive of two states. An unknown state counts as Denied.
func Worse(a, b State) State {
	return order[max(a.rank(), b.rank())]
}

func (s State) rank() int {
	if i := slices.Index(order, s); i >= 0 {
		return i
	}
	return len(order) - 1
}

// Asker asks people through one channel, such as a host's elicitation. Ask must be safe for
// concurrent use. It returns when a person has answered or ctx ends; ctx is cancelled if another
// channel was faster. An error means that this channel reached no person.
type Asker interface {
	Ask(ctx context.Context, q Question) (Verdict, error)
}

// Reserver reserves capacity for questions that are opened later. Reserve is safe for concurrent
// use. It does not block: the error is ErrFull or ErrNobody.
type Reserver interface {
	Reserve(account string) (Reservation, error)
}

// Reservation is the capacity for one question. The caller must call Open or Release.
type Reservation interface {
	// Open opens the question. If it returns no error, people can answer the question
	// from then on, and the caller must call wait for the verdict; wait returns when ctx
	// ends, at the latest. Open must be called once at most.
	Open(q Question) (wait func(ctx context.Context) (Verdict, error), err error)
	// Release releases the capacity. It does nothing after Open or a previous Release.
	Release()
}

// ErrFull is the error of a reservation if the account, or all accounts together, have
// too many open questions.
var ErrFull = errors.New("too many questions wait for an answer")

// ErrNobody is the error of a reservation if no person can be asked.
var ErrNobody = errors.New("no person can be asked")

// Informer is an Asker that can notify its person that an answer came too late.
type Informer interface {
	// TooLate is called if q was answered with won before this person answered.
	TooLate(ctx context.Context, q Question, won Verdict)
}

// None is an Asker for an Airlock that cannot ask a person. It answers every question with
// Unreachable.
type None struct{}

var (
	_ Asker    = None{}
	_ Reserver = None{}
)

// Ask answers with Unreachable at once.
func (None) Ask(context.Context, Question) (Verdict, error) { return Verdict{Answer: Unreachable}, nil }

// Reserve returns ErrNobody.
func (None) Reserve(string) (Reservation, error) { return nil, ErrNobody }
