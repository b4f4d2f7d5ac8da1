package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/runner"
)

// restore continues a run that another process has suspended: its sandbox stays suspended while people are asked
// again about its open calls. A run that cannot go on ends as interrupted.
func (o *Orchestrator) restore(ctx context.Context, req *Request) (*Outcome, error) {
	done := o.restores.begin(ctx)
	defer done()
	r, release, outcome, err := o.restored(ctx, *req)
	if r == nil {
		return outcome, err
	}
	req.saved.here.settled = done
	return o.carryOut(ctx, r, release)
}

// Many runs may have been suspended. Each of them takes processor time until it waits again, which other callers need.
const (
	maxRestores = 4
	restoreTime = time.Second // after which a run that is being restored does not count any more
)

// restores are the runs that are being restored.
type restores chan struct{}

// begin waits until few runs are being restored, or ctx ends. The caller must call done when the run waits or goes on;
// it may be called again.
func (all restores) begin(ctx context.Context) (done func()) {
	select {
	case all <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	leave := sync.OnceFunc(func() { <-all })
	late := time.AfterFunc(restoreTime, leave)
	return func() {
		late.Stop()
		leave()
	}
}

// restored returns a run that another process has begun, or the outcome of one that cannot go on. The caller must call
// release.
func (o *Orchestrator) restored(ctx context.Context, req Request) (_ *run, release func(), _ *Outcome, _ error) {
	saved := req.saved
	p, err := o.restoredPlan(ctx, req)
	if err == nil {
		err = saved.check(p.imageName())
	}
	interrupted := func(why error) (*run, func(), *Outcome, error) {
		outcome, err := o.interrupted(ctx, p, why)
		return nil, nil, outcome, err
	}
	if err != nil {
		return interrupted(err)
	}
	mount, release, err := o.parts.Wrappers.adopt(context.WithoutCancel(ctx), saved.Wrappers)
	if err != nil {
		return interrupted(err)
	}
	wanted := o.sandboxFor(p.image, mount)
	wanted.Limits, wanted.Caller = saved.Limits, p.identity.Caller.Account()
	sandbox, err := o.parts.Runner.Restore(saved.Sandbox, wanted)
	if err != nil {
		release()
		return interrupted(err)
	}
	r := newRun(p, &o.parts, sandbox, saved.Started)
	r.wrappers = mount.Source
	r.cleaned.Store(int64(saved.Cleaned))
	r.files.draft, r.session = o.draft(p), o.openSession(p)
	r.files.remove(saved.Removed)
	r.guest.handedOut.Store(true)
	close(r.start.done)
	r.socket.Reopen(saved.requests())
	return r, release, nil, nil
}

// restoredPlan returns the plan of a run that another process has begun.
func (o *Orchestrator) restoredPlan(ctx context.Context, req Request) (plan, error) {
	image, err := o.imageFor(req)
	return plan{
		identity: broker.Run{
			ID: req.ID, Caller: req.Caller, TraceID: req.saved.TraceID, CodeHash: canon.Digest(req.Code),
			Code: string(req.Code), Language: req.Language, Context: req.Context,
		},
		request: req, image: image, limits: req.saved.Limits, version: o.opts.Version,
		snapshot: o.snapshotFor(ctx, req), redactor: o.redactor(), suspendAfter: o.opts.SuspendAfter,
	}, err
}

// interrupted ends a run that another process has begun and that cannot go on.
func (o *Orchestrator) interrupted(ctx context.Context, p plan, why error) (*Outcome, error) {
	saved := p.request.saved
	o.parts.Logger.WarnContext(ctx, "a suspended run cannot go on and is ended",
		slog.String(telemetry.KeyRun, p.identity.ID), slog.Any(telemetry.KeyError, why))
	r := newRun(p, &o.parts, nil, saved.Started)
	r.files.draft = o.draft(p)
	result := failed(errortype.Interrupted, false, Interruption(why.Error(), saved.here.logged))
	usage := saved.Sandbox.Usage
	outcome := r.seal(ctx, result, broker.Summary{Made: saved.Used.Made, Denied: saved.Used.Denied,
		BytesIn: saved.Used.BytesIn, ApprovalState: string(saved.Used.Approval), Redactions: saved.Used.Redactions},
		Printed{}, Metrics{PeakMemoryBytes: usage.PeakMemory, CPUMS: usage.CPU.Milliseconds()})
	outcome = r.recorded(ctx, outcome, ending{})
	return outcome, errors.Join(o.parts.Runner.EraseSaved(saved.Sandbox), o.parts.Suspended.Remove(p.identity.ID))
}

// Interruption is the message of a run that another process has begun and that cannot go on. logged is what the audit
// log has of it, or nil.
func Interruption(why string, logged *audit.RunTree) string {
	made := "which calls it had made is not known"
	if logged != nil {
		made = logged.Journal()
	}
	return "the run was interrupted and cannot go on: " + why + "; " + made +
		"; look at what it did before you run the code again"
}

// refuseStored removes what is stored of a run that cannot be continued: it is not what Airlock has written, or the
// run has ended, because Airlock ended before it removed the file, or because somebody put the file back. It is
// recorded as a record of a kind.
func (o *Orchestrator) refuseStored(id string, kind audit.Kind, why string) error {
	record := audit.Record{Kind: kind, Identity: audit.Identity{RunID: id}}
	record.Outcome, record.ErrorType, record.Detail = audit.OutcomeRefused, errortype.Interrupted,
		"the stored state of the suspended run was refused: "+why
	ctx := context.Background()
	o.parts.Logger.WarnContext(ctx, "the stored state of a suspended run was refused",
		slog.String(telemetry.KeyRun, id), slog.String(telemetry.KeyError, why))
	return errors.Join(o.parts.Audit.Note(ctx, record), o.parts.Suspended.Remove(id))
}

// errLeft is the cause of the end of a run that goes on in another process.
var errLeft = errors.New("the run waits for a person, and goes on when Airlock starts again")

// Leave leaves runs that wait for people to a process that comes after this one, now and from now on: they are
// suspended, and their Run returns. It returns when this has been tried with all runs that wait now.
func (o *Orchestrator) Leave() { o.going.leave() }

// Suspend suspends a run that waits for people at once. The error is an *InputError if that is not possible.
func (o *Orchestrator) Suspend(id string) error {
	err := errNotWaiting
	if p := o.going.find(id); p != nil {
		err = p.suspendNow()
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*quota.Refusal)):
		return &InputError{"the run is not suspended, because the states of suspended runs have reached their limit",
			"raise runs.suspendedSize, or answer questions of other runs: airlock approvals list"}
	case errors.Is(err, errors.ErrUnsupported):
		return &InputError{"the run is not suspended: this driver, or a run with a network, stays paused",
			"it goes on after the answer: airlock approvals list"}
	}
	return &InputError{"the run does not wait for a person, so it is not suspended",
		"a run is suspended while all its open calls wait for a person's approval"}
}

// Resume lets a suspended run go on before its calls are answered. The error is an *InputError if it is not suspended.
func (o *Orchestrator) Resume(id string) error {
	p := o.going.find(id)
	if p == nil || !p.isSuspended() {
		return &InputError{"the run is not suspended", "list the runs with `airlock runs list`"}
	}
	go p.resume(true) // it may have to wait for a slot
	return nil
}

// adopt returns the mount of a tree that another process has published, and a function to release it.
func (w *Wrappers) adopt(ctx context.Context, path string) (runner.Mount, func(), error) {
	lease, err := codegen.Hold(w.dir, filepath.Base(path))
	if err != nil {
		return runner.Mount{}, nil, err
	}
	return runner.Mount{Source: lease.Path, Target: wrappersTarget}, func() {
		if err := lease.Close(); err != nil {
			w.logger.WarnContext(ctx, "wrappers stay on disk", slog.Any(telemetry.KeyError, err))
		}
	}, nil
}
