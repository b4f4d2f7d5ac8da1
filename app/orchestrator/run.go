package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-mcp/airlock/app/sessionfiles"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/telemetry"
	"github.com/airlock-mcp/airlock/internal/wire"
	"github.com/airlock-mcp/airlock/redact"
	"github.com/airlock-mcp/airlock/runner"
)

// plan contains the inputs of a run. It does not change during the run.
type plan struct {
	identity broker.Run
	request  Request
	image    runner.Image
	limits   runner.Limits
	// longer is the time limit of a run in the background, if a host's model can ask for one that is
	// longer than limits.Timeout, and 0 otherwise.
	longer   time.Duration
	version  string // Airlock's own
	snapshot *catalog.Snapshot
	redactor *redact.Redactor
	player   *replay.Player // answers the calls of a replay; nil otherwise
	// suspendAfter is how long the run waits for people before its sandbox is suspended; 0 means never.
	suspendAfter time.Duration
}

// run is one execution of code in one sandbox.
type run struct {
	plan
	parts     *Parts
	sandbox   *runner.Sandbox
	started   time.Time
	admission *broker.Admission // of the run as a whole; nil for a call without code and for a replay
	calls     *broker.RunCalls
	recorder  *replay.Recorder // nil if the run is not recorded
	removed   []redact.Finding // secrets and personal data that were kept from leaving
	cleaned   atomic.Int64     // processor time of redaction, in nanoseconds
	files     attached
	session   *sessionfiles.Run // nil if the session keeps no files
	kept      keptResults
	network   *network // nil if the run has none
	socket    *wire.Conversation
	wrappers  string  // directory of the wrappers
	pauser    *pauser // nil for a call without code
	guest     guestState
	start     startRecord
}

// guestState is the state of the guest, as observed by the socket's handlers.
type guestState struct {
	handedOut  atomic.Bool   // it has fetched the code
	finished   chan finish   // holds the one delivery that counts
	interrupts chan struct{} // holds that the guest wants to be interrupted
	served     chan struct{} // closed when no request from inside is being handled any more
}

// startRecord is the result of recording the start of the run.
type startRecord struct {
	done chan struct{} // closed when it did
	err  error         // why the audit log has no start; set before done is closed
}

func newRun(p plan, parts *Parts, sandbox *runner.Sandbox, started time.Time) *run {
	r := &run{
		plan: p, parts: parts, sandbox: sandbox, started: started,
		guest: guestState{finished: make(chan finish, 1), interrupts: make(chan struct{}, 1),
			served: make(chan struct{})},
		start: startRecord{done: make(chan struct{})},
	}
	// Of several results the first one counts, so they are taken in turn; and the guest
	// reads the answer to an interruption when it reads the next one.
	r.socket = wire.NewConversation(r.handle, methodFinish, methodInterrupt)
	return r
}

// ending is the reason why a run ended, as the host observed it. Exactly one field is set,
// apart from pending and authority.
type ending struct {
	delivered *finish      // the guest delivered a result or an error
	exit      *runner.Exit // the guest's process ended without delivering
	timeout   bool
	pending   int // with timeout: tool calls that had not been answered
	cancelled bool
	authority string // with cancelled: why the caller may not act any more; empty for another reason
	flood     bool   // more output than the sandbox may write
	protocol  error  // the socket's protocol was broken
	internal  error  // our own side failed
	lost      bool   // the state of the suspended run could not be continued
}

// undoTimeout limits the time for cleaning up after a run.
const undoTimeout = 10 * time.Second

// execute runs the code and assembles the outcome. The caller tears down afterwards.
func (r *run) execute(ctx context.Context, going *pausers) (*Outcome, error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	clock := startClock(r.left(), func() time.Duration { return r.sandbox.Usage().CPU })
	defer clock.stop()
	r.pauser = &pauser{run: r, clock: clock, going: going, over: ctx.Done(), leaveRun: leave}
	if err := r.openCalls(ctx, clock); err != nil {
		return nil, errors.Join(err, r.network.close())
	}
	defer going.add(r.pauser)()
	if r.request.OnStart != nil {
		r.request.OnStart(Live{Printed: r.printedSoFar, Calls: r.calls.Begun})
	}
	r.network.begin(r.calls)
	if !r.request.Restored() {
		go r.recordStart(ctx)
	}
	ended := r.await(ctx, clock)
	if cause := context.Cause(ctx); ended.cancelled && errors.Is(cause, errLeft) {
		r.calls.Close()
		var err error
		if !errors.Is(cause, errTaken) { // otherwise the state is erased with the sandbox
			err = r.sandbox.Leave()
		}
		return nil, errors.Join(cause, err, r.network.close())
	}
	defer r.pauser.end(ctx)
	if ended.cancelled {
		ended.authority = broker.Ended(context.Cause(ctx))
	}
	if err := r.unrecorded(); err != nil {
		return nil, errors.Join(err, r.network.close())
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if ended.delivered == nil {
		if err := r.sandbox.Kill(); err != nil {
			ended = ending{internal: err}
		}
	}
	if ended.internal != nil {
		r.parts.Logger.ErrorContext(ctx, "a run failed by the host's fault",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, ended.internal))
	}
	logs := r.collect(undo, ended)
	usage := make(chan runner.Usage, 1)
	go func() { usage <- r.sandbox.Usage() }() // while the last requests are answered
	r.settle(undo)
	if err := r.network.close(); err != nil {
		r.parts.Logger.ErrorContext(ctx, "the network of a run could not be closed",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
	}
	outcome := r.assemble(undo, ended, r.calls.Close(), logs, <-usage)
	return r.recorded(undo, outcome, ended), nil
}

// left returns the run's time limit, or what another process has left of it.
func (r *run) left() time.Duration {
	if saved := r.request.saved; saved != nil {
		return saved.Left
	}
	return r.limits.Timeout
}

// recorded records the end of the run and returns its outcome. If the end cannot be
// recorded, the result is withheld.
func (r *run) recorded(ctx context.Context, outcome *Outcome, ended ending) *Outcome {
	if err := r.recordEnd(ctx, outcome, ended); err != nil {
		// Calls were made: this is a run, and its result is withheld.
		r.parts.Logger.ErrorContext(ctx, "the end of a run could not be recorded",
			slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
		replace(&outcome.Envelope, failed(errortype.Sandbox, false,
			"the audit log could not record the end of the run, so its result is withheld; calls that were made are "+
				"not undone"))
		r.withholdFiles(ctx, &outcome.Envelope)
	}
	return outcome
}

// tearDown does the cleanup that the answer does not wait for. outcome is nil if the run
// failed to start.
func (r *run) tearDown(ctx context.Context, outcome *Outcome) {
	if r.session != nil {
		r.session.Close()
	}
	var recorded sync.WaitGroup
	if outcome != nil {
		recorded.Go(func() { r.closeRecording(ctx, outcome) }) // waits for the disk
	}
	if err := r.sandbox.Close(); err != nil {
		r.parts.Logger.ErrorContext(ctx, "a sandbox could not be removed",
			slog.String(telemetry.KeySandbox, r.sandbox.ID()), slog.Any(telemetry.KeyError, err))
	}
	recorded.Wait()
}

// await serves the sandbox's socket until the run is over and returns why.
func (r *run) await(ctx context.Context, clock *clock) ending {
	if !r.request.Restored() {
		if err := r.sandbox.Begin(); err != nil {
			close(r.guest.served)
			return ending{internal: err}
		}
	}
	serving, stop := context.WithCancel(ctx)
	var interrupting sync.WaitGroup
	defer interrupting.Wait()
	defer stop()
	if r.request.Language == "node" { // the only guest that asks for it
		interrupting.Go(func() { r.interrupt(serving) })
	}
	exited := make(chan exit, 1)
	go func() {
		status, err := r.sandbox.Wait(serving)
		exited <- exit{status, err}
	}()
	socket := make(chan error, 1)
	go func() {
		defer close(r.guest.served)
		socket <- r.socket.Serve(serving, r.sandbox.Listener())
	}()
	return r.first(ctx, clock, socket, exited, stop)
}

// settle waits until no request of the code is being handled, so that the end of the run is
// its last record.
func (r *run) settle(ctx context.Context) {
	select {
	case <-r.guest.served:
	case <-ctx.Done():
		r.parts.Logger.ErrorContext(ctx, "requests of a run that is over are still being handled",
			slog.String(telemetry.KeyRun, r.identity.ID))
	}
}

// exit is how waiting for the guest's process ended.
type exit struct {
	status runner.Exit
	err    error
}

// first waits for the first event that ends the run.
func (r *run) first(ctx context.Context, clock *clock, socket <-chan error, exited <-chan exit, stop func()) ending {
	select {
	case delivered := <-r.guest.finished:
		return r.delivered(delivered)
	case end := <-exited:
		stop() // no process is left to be served
		return r.afterExit(ctx, end, servedWithin(undoTimeout, socket))
	case err := <-socket:
		return r.afterSocket(ctx, err)
	case <-r.sandbox.Flooded():
		return ending{flood: true}
	case <-clock.expired:
		return ending{timeout: true, pending: r.calls.Active()}
	case <-ctx.Done():
		return ending{cancelled: true}
	}
}

// delivered returns the ending of a run whose guest has delivered. If the guest delivered a
// failure and a limit was exceeded before, the limit is the reason.
func (r *run) delivered(d finish) ending {
	if !d.OK {
		if met := r.sandbox.LimitMet(); met != runner.ReasonNone {
			return ending{exit: &runner.Exit{Reason: met}}
		}
	}
	return ending{delivered: &d}
}

// servedWithin waits at most timeout until the socket is no longer served, and returns the
// error of serving it. Requests that are still being handled after that time are reported
// when the run settles.
func servedWithin(timeout time.Duration, socket <-chan error) error {
	select {
	case err := <-socket:
		return err
	case <-time.After(timeout):
		return nil
	}
}

// afterExit prefers a delivery that arrived together with the exit, because the
// guest delivers and then ends at once; and a broken protocol, because the guest
// that breaks it is disconnected and then ends.
func (r *run) afterExit(ctx context.Context, end exit, served error) ending {
	select {
	case delivered := <-r.guest.finished:
		return r.delivered(delivered)
	default:
	}
	var violation *wire.ProtocolError
	switch {
	case errors.As(served, &violation):
		return ending{protocol: violation}
	case ctx.Err() != nil:
		return ending{cancelled: true}
	case r.pauser.isLost():
		return ending{lost: true}
	case end.err != nil:
		return ending{internal: end.err}
	}
	return ending{exit: &end.status}
}

func (r *run) afterSocket(ctx context.Context, err error) ending {
	var violation *wire.ProtocolError
	switch {
	case ctx.Err() != nil:
		return ending{cancelled: true}
	case errors.As(err, &violation):
		return ending{protocol: violation}
	case err == nil:
		err = errors.New("the sandbox's socket closed")
	}
	return ending{internal: fmt.Errorf("serving the socket of a run: %w", err)}
}
