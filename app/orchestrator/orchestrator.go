// Package orchestrator takes one run from code to envelope: it acquires a
// sandbox, hands the code in, carries calls to the broker, stops what exceeds
// its limits, and says truthfully what happened.
package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/attachment"
	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/quota"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// Parts are what runs are made with. All but Recordings are needed.
type Parts struct {
	Runner   *runner.Runner
	Broker   *broker.Broker
	Audit    *audit.Log
	Redactor *redact.Redactor
	Images   map[string]runner.Image // by language
	Missing  map[string]error        // why the runs of a language are refused; nil: none is
	// Script is the image for scripts; nil where there is none.
	Script    *runner.Image
	Wrappers  *Wrappers
	Snapshots Snapshots
	Logger    *slog.Logger
	// Recordings keep what a replay needs; nil keeps nothing.
	Recordings *replay.Store
	// Sessions keep what runs of one session share; nil keeps nothing.
	Sessions *sessionfiles.Store
	// Attachments keep the files that programs attach, and large results; nil
	// keeps nothing.
	Attachments *attachment.Store

	cleaning *quota.Queue // of the processors, for redaction; set by New
}

// Snapshots is where the newest tool definitions come from. Both methods may be
// called concurrently.
type Snapshots interface {
	// Snapshot returns what the caller sees: nothing where its profile is unknown.
	// What it returns never changes.
	Snapshot(who caller.Caller) *catalog.Snapshot
	// Await waits until the snapshot has the tools of these servers, or says why
	// it has not. It returns an error when ctx ends before.
	Await(ctx context.Context, serverIDs ...string) error
}

// Options say how runs go. Limits has no default: see runner.DefaultLimits.
type Options struct {
	Limits runner.Limits // Timeout is the longest that a run may take which a request waits for
	// BackgroundTimeout is the longest that a run in the background may take; 0
	// means Limits.Timeout.
	BackgroundTimeout time.Duration
	Version           string // Airlock's own, for the envelope
	// Profile is that of the callers whose sandboxes are made ready; empty for those
	// who see all tools.
	Profile string
	// Placeholders numbers what is redacted in a run: an equal value has an equal
	// placeholder in its results, logs and errors. False shows the kind only.
	Placeholders bool
	// Personal says what becomes of personal data that leaves a run.
	Personal redact.Personal
	// Attachments bound what one run may attach; the zero value means
	// attachment.DefaultLimits.
	Attachments attachment.Limits
}

// Orchestrator makes runs. Its methods may be called concurrently.
type Orchestrator struct {
	parts     Parts
	opts      Options
	teardowns sync.WaitGroup
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
	parts.cleaning = quota.New(runtime.GOMAXPROCS(0), maxCleaning)
	return &Orchestrator{parts: parts, opts: opts}, nil
}

// Check refuses a request that cannot become a run, with an *InputError, or with what
// Parts.Missing has for its language.
func (o *Orchestrator) Check(req Request) error {
	if err := req.Check(); err != nil {
		return err
	}
	if req.Call != nil {
		return nil
	}
	_, err := o.imageFor(req)
	return err
}

// Run makes one run and returns its outcome, which says truthfully what
// happened, failures included. The error is for what could not become a run:
// what Check refuses it with, runner.ErrBusy, broker.ErrSessions, or a sandbox that does not
// start. Cancelling ctx ends the run; its outcome then says so.
func (o *Orchestrator) Run(ctx context.Context, req Request) (*Outcome, error) {
	if req.Call != nil {
		return o.traced(ctx, req, o.runCall)
	}
	return o.traced(ctx, req, func(ctx context.Context, req Request) (*Outcome, error) { return o.run(ctx, req, nil) })
}

// EndSession says that a session of a host is over: what it has done counts
// towards no limit and no rule any more, as soon as its last run has ended, and the
// files that its runs share are removed.
func (o *Orchestrator) EndSession(session string) {
	o.parts.Broker.EndSession(session)
	if o.parts.Sessions == nil {
		return
	}
	if err := o.parts.Sessions.EndSession(session); err != nil {
		o.parts.Logger.ErrorContext(context.Background(), "the files of a session that is over could not be removed", slog.Any(telemetry.KeyError, err))
	}
}

// Warm has sandboxes for the newest tools made ready in the background, so that
// the first run in each language need not wait for one. Call it again when the
// tools have changed: sandboxes for former ones are then let go.
func (o *Orchestrator) Warm(ctx context.Context) error {
	snapshot := o.parts.Snapshots.Snapshot(caller.Caller{Profile: o.opts.Profile})
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

// sandboxFor asks for the sandbox of a run. Runs differ in their time limits,
// which the sandbox does not know, so all of one language ask for the same.
func (o *Orchestrator) sandboxFor(image runner.Image, wrappers runner.Mount) runner.Request {
	return runner.Request{Image: image, Limits: o.opts.Limits, Mounts: []runner.Mount{wrappers}}
}

// Close waits until every sandbox is gone. All runs must have ended.
func (o *Orchestrator) Close() {
	o.teardowns.Wait()
	o.parts.Wrappers.Close(context.Background())
}

// run makes one run; player answers its calls where it is a replay.
func (o *Orchestrator) run(ctx context.Context, req Request, player *replay.Player) (*Outcome, error) {
	started := time.Now()
	plan, err := o.plan(ctx, req, player)
	if err != nil {
		return nil, err
	}
	admission, refused := o.admit(ctx, plan)
	if refused != nil {
		return refused, nil
	}
	began, done := time.Now(), false
	defer func() { admission.End(ctx, done, time.Since(began)) }()
	wanted, release, err := o.request(ctx, plan)
	if err != nil {
		return nil, err
	}
	sandbox, err := o.acquire(ctx, wanted)
	if err != nil {
		release()
		return nil, err
	}
	began = time.Now()
	r := newRun(plan, &o.parts, sandbox, started)
	r.admission = admission
	r.files.draft, r.session = o.draft(plan), o.openSession(plan)
	if req.OnStart != nil {
		req.OnStart(r.printedSoFar)
	}
	executing, span := telemetry.Start(ctx, telemetry.SpanExecute)
	outcome, err := r.execute(executing)
	span.End(errorTypeOf(outcome, err))
	done = err == nil
	o.teardowns.Go(func() {
		defer release()
		r.tearDown(context.WithoutCancel(ctx), outcome)
	})
	return outcome, err
}

// request asks for the sandbox of a run, with the wrappers of its tools, which
// release gives back.
func (o *Orchestrator) request(ctx context.Context, p plan) (wanted runner.Request, release func(), err error) {
	if p.request.Script != nil {
		wanted, release = o.scriptSandbox(p.image, *p.request.Script), func() {}
	} else {
		var mount runner.Mount
		mount, release, err = o.parts.Wrappers.lease(context.WithoutCancel(ctx), p.snapshot, p.request.Language)
		wanted = o.sandboxFor(p.image, mount)
	}
	wanted.Caller = p.identity.Caller.Share()
	return wanted, release, err
}

// plan says what a run is made of, from the newest tools.
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
		request: req, image: image, limits: o.limits(req), version: o.opts.Version,
		snapshot: o.snapshotFor(ctx, req), redactor: o.redactor(), player: player,
	}, nil
}

// redactor cleans what leaves one run.
func (o *Orchestrator) redactor() *redact.Redactor {
	redactor := o.parts.Redactor
	if o.opts.Placeholders {
		redactor = redactor.Numbered()
	}
	return redactor.With(o.opts.Personal)
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
		return runner.Image{}, &InputError{fmt.Sprintf("the language %q is unknown", language), "use one of: " + strings.Join(known, ", ")}
	}
	return image, nil
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
