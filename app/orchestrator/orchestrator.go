// Package orchestrator executes runs: it acquires a sandbox, passes the code to it,
// forwards its calls to the broker, enforces the limits, and assembles the envelope.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// Parts are the dependencies of an Orchestrator. Those that may be nil are marked.
type Parts struct {
	Runner   *runner.Runner
	Broker   *broker.Broker
	Audit    *audit.Log
	Redactor *redact.Redactor
	Images   map[string]runner.Image // by language
	Missing  map[string]error        // why the runs of a language are refused; may be nil
	// Script is the image for scripts. It may be nil.
	Script    *runner.Image
	Wrappers  *Wrappers
	Snapshots Snapshots
	Logger    *slog.Logger
	// Recordings store what a replay needs. If nil, runs are not recorded.
	Recordings *replay.Store
	// Sessions store the files that runs of one session share. If nil, they share none.
	Sessions *sessionfiles.Store
	// Suspended stores the runs that other processes can continue. If nil, suspended runs end with the process.
	Suspended SuspendedRuns
	// Attachments store the files that programs attach, and large results. If nil, neither
	// is stored.
	Attachments *attachment.Store

	cleaning *quota.Limiter // of the processors, for redaction; set by New
}

// SuspendedRuns stores the runs that other processes can continue. Its methods are safe for concurrent use by different
// runs.
type SuspendedRuns interface {
	// Put stores a run durably, in place of what was stored of it. The error is suspended.ErrTaken if another node of
	// a cluster has the run.
	Put(run string, content any, about suspended.About) error
	// Get reads a run into content. The error is suspended.ErrDamaged if it is not what Put has stored.
	Get(run string, content any) error
	// Remove removes a run, if it is stored. It may be called twice.
	Remove(run string) error
	// List returns the runs that the processes before this one have left.
	List() ([]string, error)
}

// SharedRuns are suspended runs that the nodes of a cluster continue for each other. Its methods are safe for
// concurrent use by different runs.
type SharedRuns interface {
	SuspendedRuns
	// Claim takes suspended runs of nodes that do not act any more, with one of the images and a format.
	Claim(ctx context.Context, images []string, format string, most int) ([]string, error)
	// Taken returns the runs that other nodes have taken from this process.
	Taken(ctx context.Context) ([]string, error)
	// Fetch returns a file of a run. The error is suspended.ErrDamaged if it is not what Put has stored.
	Fetch(name string) ([]byte, error)
}

var _ SharedRuns = (*suspended.Shared)(nil)

// Snapshots provides the newest tool definitions. Its methods are safe for concurrent use.
type Snapshots interface {
	// Snapshot returns the tools that the caller can see: none if its profile is unknown.
	// The returned snapshot never changes.
	Snapshot(who caller.Caller) *catalog.Snapshot
	// Shared returns the tools for which sandboxes are prepared.
	Shared() *catalog.Snapshot
	// Await waits until the snapshot has the tools of these servers, or the reason why they
	// are missing. It returns an error if ctx ends before.
	Await(ctx context.Context, serverIDs ...string) error
}

// Options are the settings of all runs. Limits has no default: see runner.DefaultLimits.
type Options struct {
	Limits runner.Limits // Limits.Timeout applies to runs that a request waits for
	// BackgroundTimeout limits the duration of runs in the background; 0 means
	// Limits.Timeout.
	BackgroundTimeout time.Duration
	// SuspendAfter is how long the open calls of a run wait for people before its sandbox is suspended; 0 means
	// that sandboxes are not suspended.
	SuspendAfter time.Duration
	Version      string // of Airlock, for the envelope
	// Placeholders numbers redacted values: equal values in the results, logs and errors of
	// a run have the same placeholder. If false, placeholders show the kind only.
	Placeholders bool
	// Personal returns the setting for personal data that leaves a run. nil means the zero value.
	Personal func() redact.Personal
	// Network returns the hosts that runs of a caller may ask for. The policies decide about each connection. nil means
	// none.
	Network func(caller.Caller) []egress.Host
	// Dial opens the permitted connections of code; nil means to public addresses only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Roots is a directory with cert.pem, the certification authorities for runs with a network. It may be empty.
	Roots string
	// Attachments limits the files that one run can attach; the zero value means
	// attachment.DefaultLimits.
	Attachments attachment.Limits
}

// Orchestrator executes runs. It is safe for concurrent use.
type Orchestrator struct {
	parts     Parts
	opts      Options
	going     pausers
	restores  restores
	teardowns sync.WaitGroup
	closing   chan struct{} // closed by close
	close     func()        // may be called twice
}

// New returns an orchestrator of the given parts.
func New(parts Parts, opts Options) (*Orchestrator, error) {
	if parts.Runner == nil || parts.Broker == nil || parts.Audit == nil || parts.Redactor == nil ||
		parts.Wrappers == nil || parts.Snapshots == nil || parts.Logger == nil || len(parts.Images) == 0 {
		return nil, errors.New("an orchestrator needs all its parts")
	}
	if opts.Limits.Timeout <= 0 {
		return nil, errors.New("an orchestrator needs a time limit")
	}
	if opts.Attachments == (attachment.Limits{}) {
		opts.Attachments = attachment.DefaultLimits
	}
	redactions := quota.For(quota.Redactions)
	redactions.Total = int64(runtime.GOMAXPROCS(0))
	parts.cleaning = quota.New(redactions)
	closing := make(chan struct{})
	return &Orchestrator{parts: parts, opts: opts, restores: make(restores, maxRestores), closing: closing,
		close: sync.OnceFunc(func() { close(closing) })}, nil
}

// Check returns an error if a request cannot be run: an *InputError, or the error in
// Parts.Missing for its language.
func (o *Orchestrator) Check(req Request) error {
	if err := req.Check(); err != nil {
		return err
	}
	if _, err := req.Hosts(o.listed(req)); err != nil || req.Call != nil {
		return err
	}
	_, err := o.imageFor(req)
	return err
}

// Run executes one run and returns its outcome, which also describes failures of the code.
// Run returns an error only if the run was not started: an error of Check, runner.ErrBusy,
// broker.ErrSessions, or an error of starting the sandbox. Cancelling ctx ends the run and is
// reported in its outcome.
func (o *Orchestrator) Run(ctx context.Context, req Request) (*Outcome, error) {
	if req.ID == "" {
		req.ID = telemetry.NewID("run")
	}
	language := o.knownLanguage(req.Language)
	ctx, span := telemetry.Start(ctx, telemetry.SpanRun, telemetry.AttrRun.String(req.ID), language)
	outcome, err := o.runAny(ctx, &req)
	span.EndTimed(ctx, telemetry.Run, errorTypeOf(outcome, err), language)
	return outcome, err
}

// runAny executes a run of any kind.
func (o *Orchestrator) runAny(ctx context.Context, req *Request) (*Outcome, error) {
	switch {
	case req.Call != nil:
		return o.runCall(ctx, *req)
	case req.Restored():
		return o.restore(ctx, req)
	}
	return o.run(ctx, req, nil)
}

// EndSession is called when a session of a host ends. After the session's last run has
// ended, its history no longer counts for limits and rules, and the files that its runs
// share are removed.
func (o *Orchestrator) EndSession(session string) {
	o.parts.Broker.EndSession(session)
	if o.parts.Sessions == nil {
		return
	}
	ctx := context.Background() // no caller can cancel it
	if err := o.parts.Sessions.EndSession(ctx, session); err != nil {
		o.parts.Logger.ErrorContext(ctx, "the files of a session that is over could not be removed",
			slog.Any(telemetry.KeyError, err))
	}
}

// Warm prepares sandboxes for the newest tools in the background, so that the first run in
// each language does not wait for one. Call it again when the tools have changed: sandboxes
// for the former tools are then removed.
func (o *Orchestrator) Warm(ctx context.Context) error {
	snapshot := o.parts.Snapshots.Shared()
	for language, image := range o.parts.Images {
		mount, release, err := o.parts.Wrappers.lease(context.WithoutCancel(ctx), snapshot, language)
		if err != nil {
			return err
		}
		o.parts.Runner.Warm(o.sandboxFor(image, mount))
		release() // the newest tree stays published
	}
	return nil
}

// sandboxFor returns the request for the sandbox of a run. It is the same for all runs of a
// language, because the time limits of runs are not enforced by the sandbox.
func (o *Orchestrator) sandboxFor(image runner.Image, wrappers runner.Mount) runner.Request {
	return runner.Request{Image: image, Limits: o.opts.Limits, Mounts: []runner.Mount{wrappers}}
}

// Close waits until every sandbox is gone. All runs must have ended.
func (o *Orchestrator) Close() {
	o.close()
	o.teardowns.Wait()
	o.parts.Wrappers.Close(context.Background())
}

// run executes one run. In a replay, player answers its calls; otherwise it is nil.
func (o *Orchestrator) run(ctx context.Context, req *Request, player *replay.Player) (*Outcome, error) {
	// The run may wait for people for hours, so what prepares it must not be left on the stack.
	r, release, refused, err := o.prepare(ctx, *req, player)
	if r == nil {
		return refused, err
	}
	began := time.Now()
	outcome, err := o.carryOut(ctx, r, release)
	r.admission.End(ctx, err == nil, time.Since(began))
	return outcome, err
}

// prepare returns a run with a sandbox, or the outcome of a run that is refused. The caller must call release.
func (o *Orchestrator) prepare(ctx context.Context, req Request, player *replay.Player) (_ *run, release func(),
	refused *Outcome, err error) {
	started := time.Now()
	plan, err := o.plan(ctx, req, player)
	if err != nil {
		return nil, nil, nil, err
	}
	admission, refused := o.admit(ctx, plan)
	if refused != nil {
		return nil, nil, refused, nil
	}
	began := time.Now()
	defer func() {
		if err != nil {
			admission.End(ctx, false, time.Since(began))
		}
	}()
	net, err := o.openNetwork(req)
	if err != nil {
		return nil, nil, nil, err
	}
	wanted, release, err := o.request(ctx, plan)
	if err != nil {
		net.started()
		return nil, nil, nil, errors.Join(err, net.close())
	}
	o.connect(&wanted, net)
	sandbox, err := o.acquire(ctx, wanted)
	net.started()
	if err != nil {
		release()
		return nil, nil, nil, errors.Join(err, net.close())
	}
	r := newRun(plan, &o.parts, sandbox, started)
	r.admission, r.network = admission, net
	r.files.draft, r.session = o.draft(plan), o.openSession(plan)
	if len(wanted.Mounts) > 0 {
		r.wrappers = wanted.Mounts[0].Source
	}
	return r, release, nil, nil
}

// carryOut executes a run in its sandbox, and removes what belongs to it in the background.
func (o *Orchestrator) carryOut(ctx context.Context, r *run, release func()) (*Outcome, error) {
	executing, span := telemetry.Start(ctx, telemetry.SpanExecute)
	outcome, err := r.execute(executing, &o.going)
	span.End(errorTypeOf(outcome, err))
	o.afterAnswer(func() {
		defer release()
		r.tearDown(context.WithoutCancel(ctx), outcome)
	})
	return outcome, err
}

// answerTime is how long the answer to a run has the processors before its sandbox is removed, which takes more
// processor time than many a run, and before another is started in its place.
const answerTime = 5 * time.Millisecond

// afterAnswer does what the answer to a run does not wait for, in the background.
func (o *Orchestrator) afterAnswer(do func()) {
	o.teardowns.Go(func() {
		select {
		case <-time.After(answerTime):
		case <-o.closing:
		}
		do()
	})
}

// request returns the request for the sandbox of a run, with a lease of the wrappers of its
// tools. The caller must call release unless request returns an error.
func (o *Orchestrator) request(ctx context.Context, p plan) (wanted runner.Request, release func(), err error) {
	if p.request.Script != nil {
		wanted, release = o.scriptSandbox(p.image, *p.request.Script), func() {}
	} else {
		var mount runner.Mount
		mount, release, err = o.parts.Wrappers.lease(context.WithoutCancel(ctx), p.snapshot, p.request.Language)
		wanted = o.sandboxFor(p.image, mount)
	}
	wanted.Caller = p.identity.Caller.Account()
	return wanted, release, err
}

// plan returns the plan of a run, with the newest tools.
func (o *Orchestrator) plan(ctx context.Context, req Request, player *replay.Player) (plan, error) {
	if err := req.Check(); err != nil {
		return plan{}, err
	}
	image, err := o.imageFor(req)
	if err != nil {
		return plan{}, err
	}
	if req.ID == "" {
		req.ID = telemetry.NewID("run")
	}
	return plan{
		identity: broker.Run{
			ID: req.ID, Caller: req.Caller,
			TraceID: telemetry.TraceID(ctx), CodeHash: canon.Digest(req.Code), Code: string(req.Code),
			Language: req.Language, Context: req.Context,
		},
		request: req, image: image, limits: o.limits(req), longer: o.longer(req), version: o.opts.Version,
		snapshot: o.snapshotFor(ctx, req), redactor: o.redactor(), player: player,
		suspendAfter: o.opts.SuspendAfter,
	}, nil
}

// redactor cleans what leaves one run.
func (o *Orchestrator) redactor() *redact.Redactor {
	redactor := o.parts.Redactor
	if o.opts.Placeholders {
		redactor = redactor.Numbered()
	}
	if o.opts.Personal == nil {
		return redactor.With(redact.Personal{})
	}
	return redactor.With(o.opts.Personal())
}

// imageFor returns the image that a request's sandbox is made from.
func (o *Orchestrator) imageFor(req Request) (runner.Image, error) {
	switch {
	case req.Script == nil:
		return o.image(req.Language)
	case o.parts.Script == nil:
		return runner.Image{}, &InputError{"there is no image for scripts", "airlock images build verify"}
	}
	return *o.parts.Script, nil
}

func (o *Orchestrator) image(language string) (runner.Image, error) {
	image, ok := o.parts.Images[language]
	if err := o.parts.Missing[language]; !ok && err != nil {
		return runner.Image{}, err
	}
	if !ok {
		var known []string
		for name := range o.parts.Images {
			known = append(known, name)
		}
		slices.Sort(known)
		return runner.Image{}, &InputError{fmt.Sprintf("the language %q is unknown", language),
			"use one of: " + strings.Join(known, ", ")}
	}
	return image, nil
}

// longer returns plan.longer of a request. Only hosts' models can read previews of large results.
func (o *Orchestrator) longer(req Request) time.Duration {
	if req.Background || !req.PreviewLarge || o.opts.BackgroundTimeout <= o.limits(req).Timeout {
		return 0
	}
	return o.opts.BackgroundTimeout
}

// limits returns the configured limits with the time that the request asked
// for: it may be shorter, never longer.
func (o *Orchestrator) limits(req Request) runner.Limits {
	limits := o.opts.Limits
	if req.Script != nil {
		return scriptLimits(limits, *req.Script)
	}
	if req.Background && o.opts.BackgroundTimeout > 0 {
		limits.Timeout = o.opts.BackgroundTimeout
	}
	if req.Timeout > 0 {
		limits.Timeout = min(limits.Timeout, req.Timeout)
	}
	return limits
}
