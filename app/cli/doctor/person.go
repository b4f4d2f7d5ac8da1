package doctor

import (
	"context"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/contract"
)

const (
	// suspendAfter is how soon runs that wait for the person are suspended.
	suspendAfter = time.Millisecond
	// absence is how long a run stays suspended before the person answers, so that its program can see the time.
	absence = 250 * time.Millisecond
	// patience is how long the person waits for a run to be suspended.
	patience = 20 * time.Second
)

// person answers the questions of one case once its run is suspended.
type person struct {
	mu        sync.Mutex
	times     int           // the run was suspended
	suspended chan struct{} // closed while it is
}

var _ approval.Asker = (*person)(nil)

func newPerson() *person { return &person{suspended: make(chan struct{})} }

// noteSuspended notes that the run was suspended, or goes on.
func (p *person) noteSuspended(since time.Time, _ bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since.IsZero() {
		p.suspended = make(chan struct{})
		return
	}
	p.times++
	close(p.suspended)
}

// suspensions returns how often the run was suspended.
func (p *person) suspensions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.times
}

// Ask answers as the case wants, once the run is suspended, or the person's patience is over.
func (p *person) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	p.mu.Lock()
	suspended := p.suspended
	p.mu.Unlock()
	select {
	case <-suspended:
	case <-time.After(patience):
	case <-ctx.Done():
		return approval.Verdict{}, ctx.Err()
	}
	select {
	case <-time.After(absence):
	case <-ctx.Done():
		return approval.Verdict{}, ctx.Err()
	}
	v := approval.Verdict{By: "the person of the contract", Answer: approval.No}
	if contract.Approves(q.Arguments) {
		v.Answer = approval.Yes
	}
	return v, nil
}
