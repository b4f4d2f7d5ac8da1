package server

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/broker/approval"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// parkGrace is how long a run is kept for its host after the last question has
// expired.
const parkGrace = time.Minute

// parking holds runs whose host is to ask a person between two requests: from
// 2026-07-28 on a server answers input_required, and the host sends the call
// again with the person's answer (MCP 2026-07-28, Multi Round-Trip Requests).
// The run goes on meanwhile and waits for its answer.
type parking struct {
	approvals Approvals
	session   string // of all parked runs: this revision has no sessions

	mu         sync.Mutex
	runs       map[*parkedRun]bool // all that have not been answered for
	waiting    map[string]*parkedRun
	unregister func() // set while there are runs
	going      sync.WaitGroup
}

// parkedRun is a run that outlives the request which began it.
type parkedRun struct {
	request orchestrator.Request
	hash    string // of the code: a question names it
	by      string // who answers
	cancel  context.CancelFunc
	wake    chan struct{} // holds a value when there may be something to ask
	expiry  *time.Timer   // set while it waits for the host; guarded by parking.mu

	open map[string]*openQuestion // by ID; guarded by parking.mu

	done    chan struct{} // closed when outcome and err are set
	outcome *orchestrator.Outcome
	err     error
}

type openQuestion struct {
	params  *mcp.ElicitParams
	expires time.Time
	answer  chan approval.Verdict // has room for the one answer
}

func newParking(approvals Approvals, session string) *parking {
	return &parking{approvals: approvals, session: session, runs: map[*parkedRun]bool{}, waiting: map[string]*parkedRun{}}
}

// start begins a run that outlives ctx.
func (p *parking) start(ctx context.Context, runs Runs, req orchestrator.Request, by string) *parkedRun {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &parkedRun{
		request: req, hash: canon.Digest(req.Code), by: by, cancel: cancel,
		wake: make(chan struct{}, 1), open: map[string]*openQuestion{}, done: make(chan struct{}),
	}
	p.mu.Lock()
	p.runs[r] = true
	if p.unregister == nil {
		p.unregister = p.approvals.Register(p.session, p)
	}
	p.mu.Unlock()
	p.going.Go(func() {
		defer cancel()
		r.outcome, r.err = runs.Run(ctx, req)
		close(r.done)
	})
	return r
}

// await waits until the run is over, or has something to ask: then it returns
// the questions and the state that the host must send back. It takes the run
// from the parking when it is over or when ctx ends, which ends the run.
func (p *parking) await(ctx context.Context, r *parkedRun) (asked mcp.InputRequestMap, state string) {
	for {
		if ctx.Err() == nil { // else nobody would come back
			if asked, state = p.park(r); asked != nil {
				return asked, state
			}
		}
		select {
		case <-r.wake:
			continue
		case <-ctx.Done():
			r.cancel()
			<-r.done
		case <-r.done:
		}
		p.leave(r)
		return nil, ""
	}
}

// park hands the open questions out and keeps the run until the host comes
// back; nil when there is nothing to ask.
func (p *parking) park(r *parkedRun) (mcp.InputRequestMap, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-r.done: // whatever it had asked no longer matters
		return nil, ""
	default:
	}
	if len(r.open) == 0 {
		return nil, ""
	}
	asked := mcp.InputRequestMap{}
	var last time.Time
	for id, q := range r.open {
		asked[id] = q.params
		if q.expires.After(last) {
			last = q.expires
		}
	}
	state := telemetry.NewID("wait")
	p.waiting[state] = r
	r.expiry = time.AfterFunc(time.Until(last)+parkGrace, func() { p.abandon(state) })
	return asked, state
}

// resume finds the run that a host comes back for, and hands the answers on. A
// state counts once, and only for the very same call.
func (p *parking) resume(state string, req orchestrator.Request, answers mcp.InputResponseMap) (*parkedRun, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.waiting[state]
	if r == nil || r.request.Language != req.Language || string(r.request.Code) != string(req.Code) || r.request.Timeout != req.Timeout {
		return nil, &refusal{"the requestState belongs to no call that waits for an answer", "send the call again without it"}
	}
	delete(p.waiting, state)
	r.expiry.Stop()
	for id, answer := range answers {
		res, isForm := answer.(*mcp.ElicitResult)
		if q := r.open[id]; q != nil && isForm {
			delete(r.open, id)
			q.answer <- verdict(res, r.by)
		}
	}
	return r, nil
}

// abandon ends a run that its host did not come back for.
func (p *parking) abandon(state string) {
	p.mu.Lock()
	r := p.waiting[state]
	delete(p.waiting, state)
	p.mu.Unlock()
	if r == nil {
		return
	}
	r.cancel()
	<-r.done
	p.leave(r)
}

// leave forgets a run that is over.
func (p *parking) leave(r *parkedRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, r)
	if len(p.runs) == 0 && p.unregister != nil {
		p.unregister()
		p.unregister = nil
	}
}

// end ends all runs and waits for them.
func (p *parking) end() {
	p.mu.Lock()
	for state, r := range p.waiting {
		r.expiry.Stop()
		delete(p.waiting, state)
	}
	var left []*parkedRun
	for r := range p.runs {
		r.cancel()
		left = append(left, r)
	}
	p.mu.Unlock()
	for _, r := range left {
		<-r.done
		p.leave(r)
	}
	p.going.Wait()
}

var _ approval.Asker = (*parking)(nil)

// Ask gives the question to the run that asks it, for its host to show, and
// waits for the answer. Of two runs of the same code either may show it.
func (p *parking) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	asked := &openQuestion{params: question(q), expires: q.Expires, answer: make(chan approval.Verdict, 1)}
	r := p.ask(q, asked)
	if r == nil {
		return approval.Verdict{}, errNobodyWaits
	}
	select {
	case v := <-asked.answer:
		return v, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(r.open, q.ID)
		return approval.Verdict{}, ctx.Err()
	}
}

// ask adds the question to a run of its code and wakes the request that waits.
func (p *parking) ask(q approval.Question, asked *openQuestion) *parkedRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.runs {
		if r.hash != q.CodeHash {
			continue
		}
		r.open[q.ID] = asked
		select {
		case r.wake <- struct{}{}:
		default: // it is awake, or will be asked when the host comes back
		}
		return r
	}
	return nil
}
