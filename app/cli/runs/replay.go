package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/replay"
)

// Replay is airlock replay.
type Replay struct {
	verb.ConfigFlag
	RunID string `arg:"" name:"run" help:"The recorded run's ID, or the beginning of it."`
	JSON  bool   `name:"json" help:"Print one line of JSON that says whether the result is the same, with the envelope in it."`
}

// replayed is the output of --json.
type replayed struct {
	Reproduced bool                  `json:"reproduced"`
	WantDigest string                `json:"want_digest"`
	Diverged   string                `json:"diverged,omitempty"` // the first call that differed
	Envelope   orchestrator.Envelope `json:"envelope"`
}

// Run repeats the run and prints its envelope. On stderr it prints whether the result is the
// same, or the first call that differed. Exit code 0 means the same result.
func (v *Replay) Run(ctx context.Context, s *verb.Streams) error {
	opts := system.Options{Logger: verb.NewLogger(s.Err, false, slog.LevelWarn)}
	var err error
	if opts.Fixed, err = v.recorded(ctx); err != nil {
		return err
	}
	opened, err := v.Open(ctx, s.Err, opts)
	if err != nil {
		return err
	}
	again, err := opened.Orchestrator().Replay(ctx, v.RunID)
	if err != nil {
		return errors.Join(setup.Advise(err), opened.Close())
	}
	if err := errors.Join(v.print(s, again), opened.Close()); err != nil {
		return err
	}
	return verb.FailIf(!again.Reproduced())
}

func (v *Replay) print(s *verb.Streams, again *orchestrator.Replayed) error {
	if v.JSON {
		line := replayed{Reproduced: again.Reproduced(), WantDigest: again.Want, Envelope: again.Outcome.Envelope}
		if again.Diverged != nil {
			line.Diverged = again.Diverged.Error()
		}
		return verb.PrintLine(s.Out, line)
	}
	if err := printEnvelope(s.Out, again.Outcome.Envelope); err != nil {
		return err
	}
	switch {
	case again.Reproduced():
		fmt.Fprintf(s.Err, "reproduced: %s\n", again.Want)
	case again.Diverged != nil:
		fmt.Fprintf(s.Err, "airlock: the replay diverged: %v\n", again.Diverged)
	default:
		fmt.Fprintf(s.Err, "airlock: every call was the same, but the result is %s, not %s\n",
			again.Outcome.Envelope.OutputDigest, again.Want)
	}
	return nil
}

// recorded returns the tools of the recorded run, so that no server is needed. Recordings of older
// versions do not contain the tools, so their replay needs the configured servers.
func (v *Replay) recorded(ctx context.Context) (*system.Fixed, error) {
	c, err := v.LoadPlaces()
	if err != nil {
		return nil, err
	}
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return nil, err
	}
	if tree, err := verb.FindRun(directories.Audit, v.RunID); err == nil { // the beginning of an ID is enough
		v.RunID = tree.ID
	}
	recording, err := runlog.LoadRecording(directories, c.Replay, v.RunID)
	if errors.Is(err, replay.ErrNotFound) {
		if fetched := state.FetchRun(ctx, c, v.RunID); fetched != nil {
			return nil, setup.Advise(fetched)
		}
		recording, err = runlog.LoadRecording(directories, c.Replay, v.RunID)
	}
	if errors.Is(err, replay.ErrNotFound) {
		return nil, verb.WithHint(err, "airlock runs list shows the newest runs; recordings expire", verb.ExitFailed)
	}
	if err != nil {
		return nil, err
	}
	snapshot, err := orchestrator.RecordedSnapshot(recording)
	if err != nil || snapshot == nil {
		return nil, err
	}
	return &system.Fixed{Snapshot: snapshot, Upstream: NoServers{}}, nil
}

// NoServers is the upstream of a replay and of the risk gateway, which call no servers.
type NoServers struct{}

// Call returns an error.
func (NoServers) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("no server is called here")
}
