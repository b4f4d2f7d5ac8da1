package approval

import (
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/policies"
)

// Escalation lets the members of a role approve in place of the owner, after a question was open for a time. The zero
// value lets nobody.
type Escalation struct {
	After time.Duration
	Role  string
	// Awake returns the first time from t on at which people may be disturbed. nil: they may always.
	Awake func(t time.Time) time.Time
}

// wait returns after which time a question is escalated. It returns false if it is not.
func (e Escalation) wait(q Question, now time.Time) (time.Duration, bool) {
	if e.Role == "" || !slices.Contains(q.asks(), policies.Owner) {
		return 0, false
	}
	awake := e.Awake
	if awake == nil {
		awake = func(t time.Time) time.Time { return t }
	}
	return awake(awake(now).Add(e.After)).Sub(now), true
}

// escalation returns a channel that receives a value when the question is to be escalated.
func (d *Desk) escalation(q Question) (due <-chan time.Time, stop func()) {
	after, ok := d.opts.Escalation.wait(q, d.opts.Now())
	if !ok {
		return nil, func() {}
	}
	timer := time.NewTimer(after)
	return timer.C, func() { timer.Stop() }
}

// escalate lets the role of the escalation answer an open question.
func (d *Desk) escalate(o *openQuestion) {
	d.mu.Lock()
	open := !o.decided
	if open {
		o.escalated = d.opts.Escalation.Role
	}
	d.mu.Unlock()
	if open {
		d.notify(Event{Question: o.question, Open: true, HasChannel: true, Escalated: d.opts.Escalation.Role})
	}
}

// Roles returns the roles whose members may answer the question.
func (q Posted) Roles() []string {
	roles := q.RolesAsked()
	if q.Escalated != "" {
		roles = append(roles, q.Escalated)
	}
	return roles
}
