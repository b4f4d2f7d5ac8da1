package approval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/policies"
)

// maxClosed is the number of outcomes a desk remembers. The error for a late answer
// contains the outcome.
const maxClosed = 1024

// Options of a desk. The zero value is usable.
type Options struct {
	// HostPID is the process of the agent's host. Processes started by it cannot approve. 0 means
	// that there is no single host. AddHost adds more hosts.
	HostPID int
	// Hosts returns the processes of further hosts, which have no session here. nil means that there are none. After an
	// error, no process can approve.
	Hosts func() ([]int, error)
	// InForce reports whether a person who answered may still approve, with the same roles. If it is
	// nil, nobody with a credential may.
	InForce func(approver caller.Caller) bool
	// IsOwn reports whether an approver asked with one of the credentials with these IDs. Such a Yes is refused. If it
	// is nil, the IDs are compared.
	IsOwn func(approver caller.Caller, credentials []string) (bool, error)
	// Local returns who answers at a terminal of this machine: the user who runs Airlock, whoever types. If it is
	// nil, that person has no name and no role.
	Local func() caller.Caller
	// Escalation is when other people may answer in place of the owner.
	Escalation Escalation
	// OnWithdraw is called after a grant was withdrawn by somebody, if it is not nil.
	OnWithdraw func(ctx context.Context, g Grant, by string)
	Logger     *slog.Logger     // nil discards
	Now        func() time.Time // nil means time.Now

	// mayApprove decides whether a process may approve; nil means the guard.
	mayApprove func(pid int) error
}

// Desk holds the open questions of one Airlock process. Several processes may share a directory.
// All methods except Close are safe for concurrent use.
type Desk struct {
	dir      string
	opts     Options
	listener *listener
	limiter  *quota.Limiter        // of open questions
	shared   atomic.Pointer[share] // with other nodes; nil without a cluster. It is changed with mu held
	grants   grantMemory           // without a cluster

	mu          sync.Mutex // guards all fields below
	askers      map[string]*registration
	open        map[string]*openQuestion
	closed      map[string]closedQuestion // by ID
	closedOrder []string
	hosts       map[*host]bool
	subscribers map[*subscriber]bool

	notifying sync.Mutex // held while subscribers are called, so that events arrive in order
}

var (
	_ Asker    = (*Desk)(nil)
	_ Reserver = (*Desk)(nil)
)

// registration is the channel of one session. A later registration replaces it.
type registration struct{ asker Asker }

// openQuestion is a question that waits for its first answer.
type openQuestion struct {
	question Question
	digest   string // of its file
	// escalated is the role that may answer in place of the owner; empty until then
	escalated string
	agreed    []agreement // of the people who have approved so far
	decided   bool
	verdict   Verdict       // once decided
	done      chan struct{} // closed when decided
}

// OpenDesk opens the directory of questions, creates it if needed, removes questions of processes
// that have died, and accepts answers until Close.
func OpenDesk(dir string, opts *Options) (*Desk, error) {
	d := &Desk{
		dir: dir, limiter: quota.New(quota.For(quota.Questions)),
		askers: map[string]*registration{},
		open:   map[string]*openQuestion{}, closed: map[string]closedQuestion{}, subscribers: map[*subscriber]bool{},
		hosts: map[*host]bool{},
	}
	if opts != nil {
		d.opts = *opts
	}
	if d.opts.Logger == nil {
		d.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	if d.opts.InForce == nil {
		d.opts.InForce = func(who caller.Caller) bool { return len(who.Credentials) == 0 }
	}
	if d.opts.IsOwn == nil {
		d.opts.IsOwn = hasOne
	}
	if d.opts.mayApprove == nil {
		d.opts.mayApprove = guard{host: d.opts.HostPID}.check
	}
	if err := d.openDirectory(); err != nil {
		return nil, fmt.Errorf("opening the approvals in %q: %w", dir, err)
	}
	return d, nil
}

func (d *Desk) openDirectory() error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(d.dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others can write there (mode %04o): chmod 700 it", info.Mode().Perm())
	}
	if err := sweep(d.dir); err != nil {
		return err
	}
	d.listener, err = listen(d)
	return err
}

// Close stops accepting answers. Open questions stay open until their contexts end.
func (d *Desk) Close() error { return d.listener.close() }

// Open returns the number of open questions.
func (d *Desk) Open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// Register sets the channel through which the people of one session are asked, until the returned
// function is called. A later registration for the same session replaces it.
func (d *Desk) Register(sessionID string, a Asker) (unregister func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	mine := &registration{a}
	d.askers[sessionID] = mine
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.askers[sessionID] == mine {
			delete(d.askers, sessionID)
		}
	}
}

// Ask asks the person who can answer the question, through the channel of its session and through
// the command line, and returns the first answer. Without a channel it waits for the command line.
// Every call is asked about separately. If a person has given a grant for the run, Ask returns it
// without asking and sets ByGrant.
func (d *Desk) Ask(ctx context.Context, q Question) (Verdict, error) {
	if v, ok := d.granted(ctx, &q); ok {
		return v, nil
	}
	asking, stop := context.WithDeadline(ctx, q.Expires)
	defer stop()
	unit, err := d.limiter.Wait(asking, q.Account)
	if err != nil {
		return expired(ctx)
	}
	return d.askWith(ctx, unit, &q)
}

// askWith asks a question with the capacity for it.
func (d *Desk) askWith(ctx context.Context, unit *quota.Reservation, q *Question) (Verdict, error) {
	wait, err := (&reservation{desk: d, unit: unit}).Open(*q)
	if err != nil {
		return Verdict{}, err
	}
	if d.knows(q.ID) { // a question for a host that asks nobody is not open
		Opened(ctx)
	}
	return wait(ctx)
}

// openedKey carries a function from the caller of Ask.
type openedKey struct{}

// WithOpened returns a context with which Ask calls opened when its question can be answered, before Ask returns. It
// does not call it if a grant answers the question, or if nobody is asked.
func WithOpened(ctx context.Context, opened func()) context.Context {
	return context.WithValue(ctx, openedKey{}, opened)
}

// Opened calls the function of WithOpened, if there is one.
func Opened(ctx context.Context) {
	if opened, ok := ctx.Value(openedKey{}).(func()); ok {
		opened()
	}
}

// openQuestion lets people answer a question. wait returns the verdict and closes the
// question.
func (d *Desk) openQuestion(q Question) (wait func(context.Context) (Verdict, error), err error) {
	q.Desk = d.listener.name
	data, err := canon.Verbatim(q) // the digest shown must be that of the bytes that are sent
	if err != nil {
		return nil, fmt.Errorf("asking question %q: %w", q.ID, err)
	}
	if !d.canBeAnswered(q) {
		return func(context.Context) (Verdict, error) { return Verdict{Answer: Unreachable}, nil }, nil
	}
	o := &openQuestion{question: q, digest: canon.Digest(data), done: make(chan struct{})}
	d.expect(o)
	held, err := store.CreateHeld(filepath.Join(d.dir, q.ID+questionSuffix), data, 0o600)
	if err != nil {
		d.forget(q.ID)
		return nil, fmt.Errorf("asking question %q: %w", q.ID, err)
	}
	asker := d.post(o)
	return func(ctx context.Context) (Verdict, error) {
		defer d.remove(q.ID, held)
		asking, stop := context.WithDeadline(ctx, q.Expires)
		defer stop()
		return d.await(ctx, asking, o, asker)
	}, nil
}

// AsksHost reports whether the host of a session asks its people.
func (d *Desk) AsksHost(sessionID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.askers[sessionID] != nil
}

// canBeAnswered reports whether anyone can answer. A question for the host needs a session with a
// separate channel to its people.
func (d *Desk) canBeAnswered(q Question) bool {
	return !q.Elicitation.isForHost() || d.AsksHost(q.SessionID)
}

// expired returns the verdict on an expired question. The error is that of ctx.
func expired(ctx context.Context) (Verdict, error) {
	if err := ctx.Err(); err != nil {
		return Verdict{}, err
	}
	return Verdict{Answer: Expired}, nil
}

// expect registers the question before others can see it, because an answer may follow at once.
func (d *Desk) expect(o *openQuestion) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[o.question.ID] = o
}

// forget removes a question that others have not seen.
func (d *Desk) forget(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, id)
}

// post announces a question that is already visible to others, and returns the channel
// of its session, or nil.
func (d *Desk) post(o *openQuestion) Asker {
	d.mu.Lock()
	var asker Asker
	if r := d.askers[o.question.SessionID]; r != nil && slices.Contains(o.question.asks(), policies.Owner) {
		asker = r.asker
	}
	d.mu.Unlock()
	if v, ok := d.granted(context.Background(), &o.question); ok { // given to a concurrent call
		d.decide(o, v)
	}
	d.notify(Event{Question: o.question, Open: true, HasChannel: asker != nil})
	return asker
}

// remove withdraws the question. A later answer does not find it.
func (d *Desk) remove(id string, held *store.Lock) {
	d.mu.Lock()
	o := d.open[id]
	delete(d.open, id)
	outcome := "the question was withdrawn, because its run ended"
	if o.decided {
		outcome = o.outcome()
	}
	if len(d.closedOrder) >= maxClosed {
		delete(d.closed, d.closedOrder[0])
		d.closedOrder = d.closedOrder[1:]
	}
	d.closed[id] = closedQuestion{o.asking(), outcome}
	d.closedOrder = append(d.closedOrder, id)
	d.mu.Unlock()
	if err := errors.Join(removeIfThere(filepath.Join(d.dir, id+questionSuffix)), held.Release()); err != nil {
		d.opts.Logger.WarnContext(context.Background(), "a question could not be removed",
			slog.Any(telemetry.KeyError, err))
	}
	d.notify(Event{Question: o.question, Outcome: outcome})
}

// await waits for an answer, the expiry of the question or the end of ctx. asking ends with either
// of the last two.
func (d *Desk) await(ctx, asking context.Context, o *openQuestion, asker Asker) (Verdict, error) {
	asking, stop := context.WithCancel(asking)
	var channel sync.WaitGroup
	defer channel.Wait()
	defer stop()
	if asker != nil {
		channel.Go(func() { d.askThrough(ctx, asking, o, asker) })
	}
	due, stopWaiting := d.escalation(o.question)
	defer stopWaiting()
	for waiting := true; waiting; {
		select {
		case <-due: // once
			d.escalate(o)
			continue
		case <-o.done:
		case <-asking.Done():
			if ctx.Err() == nil {
				d.decide(o, Verdict{Answer: Expired})
			}
		}
		waiting = false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !o.decided {
		return Verdict{}, ctx.Err()
	}
	return o.verdict, nil
}

// askThrough asks through the channel of the question's session. If another answer was
// faster, the channel is notified.
func (d *Desk) askThrough(ctx, asking context.Context, o *openQuestion, asker Asker) {
	v, err := asker.Ask(asking, o.question)
	if err != nil {
		if asking.Err() == nil && o.question.Elicitation.isForHost() {
			d.decide(o, Verdict{Answer: Unreachable}) // no other channel takes values
		}
		if asking.Err() == nil {
			d.opts.Logger.WarnContext(ctx, "a person could not be asked through the host",
				slog.Any(telemetry.KeyError, err))
		}
		return
	}
	if d.answered(o, v) {
		return
	}
	d.mu.Lock()
	won := o.verdict
	d.mu.Unlock()
	d.opts.Logger.WarnContext(ctx, "an answer through the host came too late",
		slog.String("question_id", o.question.ID), slog.String("won", won.String()))
	if informer, ok := asker.(Informer); ok {
		informer.TooLate(ctx, o.question, won)
	}
}

// answered takes the answer of the owner, through the channel of the session. It reports whether it counts.
func (d *Desk) answered(o *openQuestion, v Verdict) bool {
	d.dropLost(o.question.ID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.Answer != Yes || o.question.Whom() == "" {
		return d.decideLocked(o, v)
	}
	owner := caller.Caller{Principal: o.question.Principal, Issuer: o.question.Issuer}
	person := Person{Name: owner.Name(), Owner: true}
	return !o.decided && d.agreeLocked(o, agreement{person: person, by: v.By, extent: v.For}) == nil
}

// decide sets the verdict of a question and reports whether it was the first.
func (d *Desk) decide(o *openQuestion, v Verdict) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decideLocked(o, v)
}

func (d *Desk) decideLocked(o *openQuestion, v Verdict) bool {
	if o.decided {
		return false
	}
	o.decided, o.verdict = true, v
	if g, ok := d.grantOf(o.question, v); ok {
		if s := d.shared.Load(); s != nil {
			s.extend(o, g) // and closes done afterwards
			return true
		}
		g.Used = d.coverLocked(g)
		_ = d.grants.add(context.Background(), g, g.Given) // memory has no errors
	}
	close(o.done)
	return true
}
