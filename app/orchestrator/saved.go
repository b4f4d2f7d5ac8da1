package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// savedRun is a suspended run as data: what another process needs to continue it.
type savedRun struct {
	Request Request
	TraceID string
	Started time.Time
	// Suspended is when the run was suspended; zero if an earlier version has stored it.
	Suspended time.Time
	Limits    runner.Limits
	Left      time.Duration // of the time limit
	Image     string        // imageName
	Wrappers  string        // directory of the wrappers
	Attached  []attachment.File
	Sandbox   runner.Saved
	Used      broker.Used
	Cleaned   time.Duration // processor time of redaction
	Removed   []redact.Finding
	Open      []savedCall
	// Number counts the times that the run was suspended beyond its process.
	Number int
	// Continued is set before the sandbox goes on. From then on, another process cannot continue the run.
	Continued bool

	here inProcess // not embedded: strictjson reads embedded structs
}

// inProcess is what only the process that holds a suspended run knows.
type inProcess struct {
	logged  *audit.RunTree // the run's records in the audit log; nil if it has none
	shared  bool           // the database of a cluster decides which node continues the run
	settled func()         // called when the restored run waits or goes on
}

// savedCall is an open call of a suspended run.
type savedCall struct {
	ID      json.RawMessage // of the request on the socket
	Params  json.RawMessage
	Expires time.Time // when the question about it expires
	// Begun is set before the call is made. If Answer is missing then, the call may have been made.
	Begun  bool
	Answer json.RawMessage `json:",omitempty"`
}

// find returns the open call with the ID of a request, or nil.
func (s *savedRun) find(id string) *savedCall {
	for i := range s.Open {
		if string(s.Open[i].ID) == id {
			return &s.Open[i]
		}
	}
	return nil
}

// isMaking reports whether a call is being made.
func (s *savedRun) isMaking() bool {
	return slices.ContainsFunc(s.Open, func(c savedCall) bool { return c.Begun && c.Answer == nil })
}

// save returns the suspended run as data. It returns false if its state ends with this process.
func (p *pauser) save(asking map[string]time.Time) (*savedRun, bool) {
	r := p.run
	state, ok := r.parts.Runner.Saved(r.sandbox)
	if !ok {
		return nil, false
	}
	saved := &savedRun{
		Request: r.request, TraceID: r.identity.TraceID, Started: r.started, Suspended: time.Now(), Limits: r.limits,
		Left: p.clock.remaining(), Image: r.imageName(), Wrappers: r.wrappers, Sandbox: state, Used: r.calls.Used(),
		Cleaned: time.Duration(r.cleaned.Load()), Removed: r.files.found(), Number: 1,
		Attached: r.files.draft.Files(),
	}
	if p.saved != nil {
		saved.Number += p.saved.Number
	}
	for _, req := range r.socket.Open() {
		expires, waits := asking[string(req.ID)]
		if !waits {
			return nil, false
		}
		saved.Open = append(saved.Open, savedCall{ID: req.ID, Params: req.Params, Expires: expires})
	}
	return saved, true
}

// requests returns the open requests, for wire.Conversation.Reopen.
func (s *savedRun) requests() []wire.Request {
	requests := make([]wire.Request, 0, len(s.Open))
	for _, call := range s.Open {
		requests = append(requests, wire.Request{ID: call.ID, Method: methodCall, Params: call.Params})
	}
	return requests
}

// interruptedCall is the answer to a call that another process may have made.
var interruptedCall = broker.Answer{Error: &broker.Error{Type: errortype.Interrupted,
	Message: "Airlock ended while the call was made, so it may have been carried out: look before you make it again",
	Source:  errortype.SourceBroker}}

// savedAnswer is an answer that another process has received.
type savedAnswer json.RawMessage

// AppendJSON appends the answer.
func (a savedAnswer) AppendJSON(text []byte) ([]byte, error) { return append(text, a...), nil }

var _ wire.Appender = savedAnswer(nil)

// reopened returns the answer to a call that another process has dealt with. It is nil if the call is to be made; then
// expires is when the question about it ends, or zero for a call of this process.
func (p *pauser) reopened(id string) (answer any, expires time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isDurable() {
		return nil, time.Time{}
	}
	call := p.saved.find(id)
	switch {
	case call == nil:
		return nil, time.Time{}
	case call.Answer != nil:
		answer = savedAnswer(call.Answer)
	case call.Begun:
		answer = callAnswer{interruptedCall, lasting{func() {}}}
	default:
		return nil, call.Expires
	}
	if p.suspended && !p.waiting {
		go p.resume(false)
	}
	return answer, time.Time{}
}

// Logged returns the records of runs from the audit log, from a time on. Runs without records are missing.
type Logged func(since time.Time, ids map[string]bool) (map[string]*audit.RunTree, error)

// Suspended returns requests for the runs that the processes of this node before this one have suspended. Each of them
// is to be passed to Run once: it goes on, or it ends as interrupted. The files of runs that have ended are removed. It
// is called before other runs start. again are runs of a cluster that could not be read; they are to be passed to
// Adopt.
func (o *Orchestrator) Suspended(ctx context.Context, logged Logged) (_ []Request, again []string, _ error) {
	stored := o.parts.Suspended
	if stored == nil {
		return nil, nil, nil
	}
	ids, err := stored.List()
	if err != nil {
		return nil, nil, err
	}
	requests, again, err := o.continued(ctx, ids, logged)
	var kept []runner.Saved
	for _, request := range requests {
		if !request.saved.Continued {
			kept = append(kept, request.saved.Sandbox)
		}
	}
	if requests == nil && err != nil { // the files may be needed
		return nil, again, err
	}
	return requests, again, errors.Join(err, o.parts.Runner.SweepSaved(kept))
}

// continued returns requests for stored runs of this node, and removes those that have ended or are damaged.
func (o *Orchestrator) continued(ctx context.Context, ids []string, logged Logged) (requests []Request, again []string,
	_ error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	found, refused, wanted := map[string]*savedRun{}, map[string]error{}, map[string]bool{}
	first := time.Now()
	for _, id := range ids {
		saved, err := o.readSaved(ctx, id)
		_, isShared := o.parts.Suspended.(SharedRuns)
		if isShared && err != nil && !errors.Is(err, suspended.ErrDamaged) {
			o.parts.Logger.WarnContext(ctx, "a suspended run could not be read, which is tried again",
				slog.String(telemetry.KeyRun, id), slog.Any(telemetry.KeyError, err))
			again = append(again, id)
			continue
		}
		found[id], refused[id], wanted[id] = saved, err, true
		if saved.Started.Before(first) { // if it is damaged, from the beginning of the log on
			first = saved.Started
		}
	}
	runs, err := logged(first, wanted)
	if err != nil {
		return nil, ids, err
	}
	var unremoved error
	for _, id := range ids { // in the same order at each start
		saved := found[id]
		if saved == nil {
			continue
		}
		saved.here.logged = runs[id]
		switch ended := saved.here.logged != nil && saved.here.logged.End != nil; {
		case ended:
			unremoved = errors.Join(unremoved, o.refuseStored(id, audit.KindRunResume, "the run has ended"))
			continue
		case refused[id] != nil:
			unremoved = errors.Join(unremoved, o.refuseStored(id, audit.KindRunEnd, refused[id].Error()))
			continue
		}
		saved.Request.saved = saved
		requests = append(requests, saved.Request)
	}
	return requests, again, unremoved
}

// readSaved reads a stored run. It is not nil if there is an error.
func (o *Orchestrator) readSaved(ctx context.Context, id string) (*savedRun, error) {
	saved := &savedRun{}
	if err := o.parts.Suspended.Get(id, saved); err != nil {
		return saved, err
	}
	if saved.Request.ID != id {
		return saved, errOtherRun
	}
	if shared, ok := o.parts.Suspended.(SharedRuns); ok {
		saved.here.shared = true
		if !saved.Continued {
			return saved, o.bring(ctx, shared, saved)
		}
	}
	return saved, nil
}

// errOtherRun is the reason why a stored run is refused that has the name of another one.
var errOtherRun = fmt.Errorf("it is that of another run: %w", suspended.ErrDamaged)

// isOld reports whether the audit log has more of the run than what was stored. Then somebody put the file back after
// it had been removed or replaced. The last suspension may be missing in the log, because it is recorded last.
func (s *savedRun) isOld() bool {
	if s.here.logged == nil {
		return false
	}
	number, resumed, calls := s.here.logged.SinceSuspended()
	begun := 0
	for _, call := range s.Open {
		if call.Begun {
			begun++
		}
	}
	return number > s.Number || number == s.Number && (resumed && !s.Continued || calls > begun)
}

// Restored reports whether another process has begun the run.
func (r Request) Restored() bool { return r.saved != nil }

// Began is when a restored run was started.
func (r Request) Began() time.Time { return r.saved.Started }

// check returns why the run cannot go on in this process.
func (s *savedRun) check(image string) error {
	switch {
	case s.Continued:
		return errors.New("the process of Airlock ended after the run had continued")
	case s.here.logged == nil && !s.here.shared: // the log of another node has it
		return errors.New("the audit log has no record of its suspension")
	case s.isOld():
		return errors.New("its stored state is older than the audit log")
	case s.Image != image:
		return fmt.Errorf("the image of its sandbox has changed: it was %s, and is %s", s.Image, image)
	}
	return nil
}
