package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// take accepts an answer of another process, or returns the reason for refusing it.
func (d *Desk) take(r request, from peer) response {
	if from.user != os.Geteuid() && from.user != 0 {
		return response{Refused: refusedOther, Detail: "the answer comes from another user"}
	}
	if s := d.shared.Load(); s != nil && !d.knows(r.ID) {
		return d.takeElsewhere(s, r, from)
	}
	d.mu.Lock()
	o, outcome := d.open[r.ID], d.closed[r.ID].outcome
	if o != nil && o.decided {
		outcome = o.outcome()
	}
	d.mu.Unlock()
	switch {
	case o == nil || outcome != "":
		return response{Refused: refusedClosed, Detail: cmp.Or(outcome, "the question is not open")}
	case r.Answer == "":
		return response{Detail: "the question is open"}
	case r.Question != o.digest:
		return response{Refused: refusedOther,
			Detail: "the answer is to another question, or to one that was changed after it was asked"}
	}
	v := Verdict{By: from.name(), Reason: reason(r.Reason)}
	switch r.Answer {
	case replyDeny:
	case replyApprove:
		if o.question.Elicitation.isForHost() {
			return response{Refused: refusedOther, Detail: ErrNeedsValues.Error()}
		}
		if refused, ok := d.refuse(from, o.question.SessionID); ok {
			return refused
		}
		return d.takeYes(o, r, from)
	default:
		return response{Refused: refusedOther, Detail: errNoAnswer}
	}
	if d.decide(o, v) {
		return response{Taken: true}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return response{Refused: refusedClosed, Detail: o.outcome()}
}

// takeElsewhere passes an answer to the node of the cluster that asked. This process decides whether the answer comes
// from a person of this machine, and the node that asked whether it counts.
func (d *Desk) takeElsewhere(s *share, r request, from peer) response {
	q, _, err := s.find(r.ID)
	switch {
	case err != nil:
		return notTaken(err)
	case r.Answer == "":
		return response{Detail: "the question is open"}
	}
	answer := Response{ID: r.ID, Digest: r.Question, By: fmt.Sprintf("%s of node %s", from.name(), s.name())}
	answer.Person, answer.Approver = d.local()
	switch r.Answer {
	case replyDeny:
		answer.Reason = reason(r.Reason)
	case replyApprove:
		if refused, ok := d.refuse(from, q.SessionID); ok {
			return refused
		}
		answer.Approve = true
		if answer.For, err = ParseExtent(r.For, d.opts.Now()); err != nil {
			return notTaken(err)
		}
	default:
		return response{Refused: refusedOther, Detail: errNoAnswer}
	}
	if err := s.answer(answer); err != nil {
		return notTaken(err)
	}
	taken := response{Taken: true}
	if now, _, err := s.find(r.ID); err == nil && answer.Approve { // other people have to approve, too
		taken.Detail = now.Progress
	}
	return taken
}

// notTaken returns the response for an error of share.
func notTaken(err error) response {
	if errors.Is(err, ErrClosed) {
		return response{Refused: refusedClosed, Detail: err.Error()}
	}
	return response{Refused: refusedOther, Detail: err.Error()}
}

// errNoAnswer is the response to a request that does not answer.
const errNoAnswer = "the answer says neither " + replyApprove + " nor " + replyDeny

// local returns the user of this machine, as caller too if it is known.
func (d *Desk) local() (Person, *caller.Caller) {
	if d.opts.Local == nil {
		return Person{Owner: true}, nil
	}
	local := d.opts.Local()
	return PersonOf(local, true), &local
}

// takeYes takes an approval at a terminal of this machine.
func (d *Desk) takeYes(o *openQuestion, r request, from peer) response {
	extent, err := ParseExtent(r.For, d.opts.Now())
	if err != nil {
		return response{Refused: refusedOther, Detail: err.Error()}
	}
	person, approver := d.local()
	one := agreement{person: person, by: from.name(), approver: approver, extent: extent}
	d.dropLost(r.ID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.decided {
		return response{Refused: refusedClosed, Detail: o.outcome()}
	}
	if err := d.agreeLocked(o, one); err != nil {
		return response{Refused: refusedOther, Detail: err.Error()}
	}
	return response{Taken: true, Detail: o.progress()}
}

// refuse returns the reason why a process may not approve a question of a session. It returns false
// if the process may.
func (d *Desk) refuse(from peer, session string) (response, bool) {
	err := d.MayApprove(from.pid, session)
	if err == nil && !from.lives() {
		err = fmt.Errorf("%w: the process has ended", ErrNoTerminal)
	}
	if err == nil {
		return response{}, false
	}
	d.opts.Logger.WarnContext(context.Background(), "an approval was refused", slog.Int("pid", from.pid),
		slog.Any(telemetry.KeyError, err))
	why := refusedTerminal
	if errors.Is(err, ErrOfHost) {
		why = refusedHost
	}
	return response{Refused: why, Detail: err.Error()}, true
}

// MayApprove returns nil if the process pid may now approve a question of a session: it runs this
// program at a person's terminal (else ErrNoTerminal), and is not a process of an agent's host
// (else ErrOfHost).
func (d *Desk) MayApprove(pid int, session string) error {
	if err := d.opts.mayApprove(pid); err != nil {
		return err
	}
	return d.apartFromHosts(pid, session)
}
