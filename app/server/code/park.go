package code

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/server"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// parkGrace is the time that a run is kept for its host after the last question has expired.
const parkGrace = time.Minute

// parking holds runs whose host asks a person between two requests. Since 2026-07-28 a server
// answers input_required, and the host sends the call again with the person's answer (MCP
// 2026-07-28, Multi Round-Trip Requests). In the meantime the run waits for the answer. A question
// belongs to the run that asks it, and a run to its caller.
type parking struct {
	approvals Approvals
	begin     func(ctx context.Context, req orchestrator.Request) (*runs.Run, error)
	gate      server.Gate
	mark      func(id string) string // of Options; nil changes nothing

	mu      sync.Mutex
	runs    map[string]*parkedRun // by run ID; until the host has received the outcome
	waiting map[string]*parkedRun // by request state; those that wait for a request of their host
	asking  map[string]*channel   // by session
}

// channel is the registration of a session for its questions.
type channel struct {
	runs       int // the number of the session's runs in parking.runs
	unregister func()
}

// parkedRun is a run that can outlive the request that started it.
type parkedRun struct {
	*runs.Run
	owner   caller.Owner
	request orchestrator.Request
	host    answering
	wake    chan struct{} // holds a value when there may be something to ask
	expiry  *time.Timer   // set while it waits for the host; guarded by parking.mu

	open   map[string]*openQuestion // by ID; guarded by parking.mu
	closed map[string]bool          // questions that were decided elsewhere or expired; guarded by parking.mu
	late   []string                 // questions whose answer from the host came too late; guarded by parking.mu
}

// answering is the host that answers the questions of a run.
type answering struct {
	by        string // the caller and host
	opensURLs bool
}

type openQuestion struct {
	asked   approval.Question
	params  *mcp.ElicitParams
	expires time.Time
	answer  chan approval.Verdict // buffered for one answer
}

func newParking(approvals Approvals, begin func(context.Context, orchestrator.Request) (*runs.Run, error),
	gate server.Gate, mark func(id string) string) *parking {
	return &parking{
		approvals: approvals, begin: begin, gate: gate, mark: mark,
		runs: map[string]*parkedRun{}, waiting: map[string]*parkedRun{}, asking: map[string]*channel{},
	}
}

// start begins a run that outlives ctx and whose questions the host answers.
func (p *parking) start(ctx context.Context, req orchestrator.Request, host answering) (*parkedRun, error) {
	p.mu.Lock() // held until the run is in p.runs; its first question waits for that
	defer p.mu.Unlock()
	p.listenLocked(req.Caller.Session)
	run, err := p.begin(ctx, req)
	if err != nil {
		p.unlistenLocked(req.Caller.Session)
		return nil, err
	}
	parked := &parkedRun{
		Run: run, owner: req.Caller.Owner(), request: req, host: host,
		wake: make(chan struct{}, 1), open: map[string]*openQuestion{}, closed: map[string]bool{},
	}
	p.runs[run.ID()] = parked
	return parked, nil
}

// listenLocked registers p for the questions of a session and counts its runs.
func (p *parking) listenLocked(session string) {
	c := p.asking[session]
	if c == nil {
		c = &channel{unregister: p.approvals.Register(session, p)}
		p.asking[session] = c
	}
	c.runs++
}

func (p *parking) unlistenLocked(session string) {
	c := p.asking[session]
	if c.runs--; c.runs == 0 {
		c.unregister()
		delete(p.asking, session)
	}
}

// await waits until the run has ended or has questions. In the latter case it returns the questions
// and the state that the host must send back. If ctx ends, await cancels the run. A run that has
// ended is removed from p.
func (p *parking) await(ctx context.Context, r *parkedRun) (asked mcp.InputRequestMap, state string) {
	for {
		if ctx.Err() == nil { // otherwise the host will not return
			if asked, state = p.park(r); asked != nil {
				return asked, state
			}
		}
		select {
		case <-r.wake:
			continue
		case <-ctx.Done():
			r.Cancel()
			<-r.Done()
		case <-r.Done():
		}
		p.leave(r)
		return nil, ""
	}
}

// park returns the open questions and keeps the run until the host returns. It returns nil without
// open questions.
func (p *parking) park(r *parkedRun) (mcp.InputRequestMap, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-r.Done(): // its questions no longer matter
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
	if p.mark != nil {
		state = p.mark(state)
	}
	p.waiting[state] = r
	r.expiry = time.AfterFunc(time.Until(last)+parkGrace, func() { p.abandon(state) })
	return asked, state
}

// resume finds the run of a request state and passes on the answers. A state can be used once, only
// by the caller of the run, and only with the same call.
func (p *parking) resume(state string, req orchestrator.Request, answers mcp.InputResponseMap) (*parkedRun, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.waiting[state]
	if r == nil || r.owner != req.Caller.Owner() || !sameCall(r.request, req) {
		return nil, &refusal{"the requestState belongs to no call that waits for an answer",
			"send the call again without it"}
	}
	delete(p.waiting, state)
	r.expiry.Stop()
	r.answerLocked(answers)
	return r, nil
}

// answerLocked passes on the answers of a host.
func (r *parkedRun) answerLocked(answers mcp.InputResponseMap) {
	for id, answer := range answers {
		res, isForm := answer.(*mcp.ElicitResult)
		switch q := r.open[id]; {
		case !isForm:
		case q != nil:
			delete(r.open, id) // also one that was closed: it is not shown again
			q.answer <- given(q.asked, res, r.host.by)
		case r.closed[id] && res.Action != "cancel":
			r.late = append(r.late, id)
		}
	}
}

// answer passes on the answers of a host to the questions of a run. Those of another owner and to other questions
// are ignored.
func (p *parking) answer(runID string, owner caller.Owner, answers mcp.InputResponseMap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[runID]; r != nil && r.owner == owner {
		r.answerLocked(answers)
	}
}

// questions returns the open questions of a run.
func (p *parking) questions(runID string, owner caller.Owner) mcp.InputRequestMap {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := mcp.InputRequestMap{}
	if r := p.runs[runID]; r != nil && r.owner == owner {
		for id, q := range r.open {
			asked[id] = q.params
		}
	}
	return asked
}

// tooLate returns the questions that had been decided before their answer arrived through the host.
func (p *parking) tooLate(r *parkedRun) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(r.late)
	return r.late
}

// sameCall reports whether two requests have the same arguments.
func sameCall(a, b orchestrator.Request) bool {
	return a.Language == b.Language && (a.Call == nil) == (b.Call == nil) && a.Timeout == b.Timeout &&
		bytes.Equal(a.Code, b.Code)
}

// abandon ends a run whose host has not returned.
func (p *parking) abandon(state string) {
	p.mu.Lock()
	r := p.waiting[state]
	delete(p.waiting, state)
	p.mu.Unlock()
	if r == nil {
		return
	}
	r.Cancel()
	<-r.Done()
	p.leave(r)
}

// leave removes a run that has ended.
func (p *parking) leave(r *parkedRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs[r.ID()] == r {
		delete(p.runs, r.ID())
		p.unlistenLocked(r.owner.Session)
	}
}

// end ends the runs of a session that has ended, and waits for them.
func (p *parking) end(session string) {
	p.mu.Lock()
	for state, r := range p.waiting {
		if r.owner.Session == session {
			r.expiry.Stop()
			delete(p.waiting, state)
		}
	}
	var left []*parkedRun
	for _, r := range p.runs {
		if r.owner.Session == session {
			r.Cancel()
			left = append(left, r)
		}
	}
	p.mu.Unlock()
	for _, r := range left {
		<-r.Done()
		p.leave(r)
	}
}

var _ approval.Asker = (*parking)(nil)

// Ask passes the question to its run, so that the host shows it, and waits for the answer.
func (p *parking) Ask(ctx context.Context, q approval.Question) (approval.Verdict, error) {
	r := p.find(q.RunID)
	if r == nil {
		return approval.Verdict{}, errNotParked
	}
	asked := &openQuestion{asked: q, params: question(q, r.host.opensURLs), expires: q.Expires,
		answer: make(chan approval.Verdict, 1)}
	asked.params.Message = p.gate.Text(asked.params.Message)
	if q.Elicitation != nil && q.Elicitation.Schema != nil { // the server's texts
		asked.params.RequestedSchema = p.gate.JSON(q.Elicitation.Schema)
	}
	p.ask(r, asked)
	select {
	case v := <-asked.answer:
		return v, nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(r.open, q.ID)
		r.closed[q.ID] = true
		return approval.Verdict{}, ctx.Err()
	}
}

func (p *parking) find(runID string) *parkedRun {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[runID]
}

// ask adds the question to its run and wakes the request that waits.
func (p *parking) ask(r *parkedRun, asked *openQuestion) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.open[asked.asked.ID] = asked
	select {
	case r.wake <- struct{}{}:
	default: // it is awake, or will be asked when the host comes back
	}
}
