package orchestrator

import (
	"context"
	"errors"
	"log/slog"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Replayed is the result of running recorded code again with recorded answers.
type Replayed struct {
	Outcome *Outcome
	// Want is the output digest of the recorded run.
	Want string
	// Diverged is the first call that the recorded run did not make; nil when
	// all calls were the same.
	Diverged *replay.Divergence
}

// Reproduced reports whether the replay gave the recorded result.
func (r *Replayed) Reproduced() bool {
	return r.Diverged == nil && r.Outcome.Envelope.OutputDigest == r.Want
}

// errNoRecordings is returned if runs are not recorded.
var errNoRecordings = errors.New("runs are not recorded here")

// Replay runs the code of a former run again, in a fresh sandbox, with the
// answers it was given then. No server is called and no person is asked. The
// wrappers are those of the tools that o has: see RecordedSnapshot. Errors are those of Run, and
// replay.ErrNotFound.
func (o *Orchestrator) Replay(ctx context.Context, runID string) (*Replayed, error) {
	if o.parts.Recordings == nil {
		return nil, errNoRecordings
	}
	recording, err := o.parts.Recordings.Load(runID)
	if err != nil {
		return nil, err
	}
	if recording.Language == LanguageCall || recording.Language == LanguageScript {
		return nil, errNoProgram(recording)
	}
	player := recording.Player()
	outcome, err := o.run(ctx, &Request{
		Language: recording.Language, Code: []byte(recording.Code),
		Caller: caller.Caller{
			Principal: recording.Principal, Kind: caller.Kind(recording.CallerKind), Issuer: recording.Issuer,
			Session: recording.SessionID,
		},
	}, player)
	if err != nil {
		return nil, err
	}
	return &Replayed{Outcome: outcome, Want: recording.OutputDigest, Diverged: player.Diverged()}, nil
}

// openCalls begins the run's calls: answered from a recording in a replay, and
// recorded for one otherwise.
func (r *run) openCalls(ctx context.Context, clock *clock) error {
	opts := &broker.RunOptions{Redactor: r.redactor, Player: r.player, Admitted: r.admission,
		Notices: r.request.Notices}
	if r.session != nil {
		opts.Keep = r.keepResult
	}
	if clock != nil { // a call without code has no clock to stop
		opts.OnWait, opts.OnApproved = r.pauser.wait, r.pauser.approved
	}
	if saved := r.request.saved; saved != nil {
		clock.pause(true)
		r.pauser.suspended, r.pauser.saved = true, saved
		r.pauser.notify(true)
		opts.Before = saved.Used
	}
	if r.player == nil && r.parts.Recordings != nil && !r.request.Restored() && !r.holdsCredential() {
		recorder, err := r.parts.Recordings.Create(head(r), recordedTools(r.snapshot))
		if err != nil {
			r.unreplayable(ctx, err)
		} else {
			r.recorder, opts.Recording = recorder, recorder
		}
	}
	var err error
	if r.calls, err = r.parts.Broker.Open(r.identity, r.snapshot, opts); err != nil && r.recorder != nil {
		err = errors.Join(err, r.recorder.Close(replay.Output{}))
	}
	return err
}

func head(r *run) replay.Head {
	return replay.Head{
		RunID: r.identity.ID, Principal: r.identity.Caller.Principal, Issuer: r.identity.Caller.Issuer,
		CallerKind: string(r.identity.Caller.Kind), SessionID: r.identity.Caller.Session,
		Language: r.request.Language, Code: string(r.request.Code), CodeHash: r.identity.CodeHash,
		Image: r.imageName(), Snapshot: r.snapshot.Digest(),
	}
}

// closeRecording ends the recording with what the run came to. It waits for the
// disk.
func (r *run) closeRecording(ctx context.Context, outcome *Outcome) {
	if r.recorder == nil {
		return
	}
	line, err := outcome.Envelope.Line()
	if err == nil {
		err = r.recorder.Close(replay.Output{
			OutputDigest: outcome.Envelope.OutputDigest, Envelope: line, Stdout: outcome.Stdout, Stderr: outcome.Stderr,
		})
	}
	if err != nil {
		r.unreplayable(ctx, err)
	}
}

// unreplayable notes that a run goes on without a recording: the audit log, not
// the recording, is what a call may not happen without.
func (r *run) unreplayable(ctx context.Context, err error) {
	r.parts.Logger.WarnContext(ctx, "a run cannot be replayed",
		slog.String(telemetry.KeyRun, r.identity.ID), slog.Any(telemetry.KeyError, err))
}

var _ broker.Recording = (*replay.Recorder)(nil)

// holdsCredential reports whether the code contains a credential that Airlock holds. Such
// code is not stored, and so cannot be replayed.
func (r *run) holdsCredential() bool {
	_, found := r.redactor.Held([]byte(r.identity.Code))
	return len(found) > 0
}
