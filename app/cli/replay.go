package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/replay"
)

type replayVerb struct {
	configFlag
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
func (v *replayVerb) Run(ctx context.Context, s *streams) error {
	opts := system.Options{Logger: newLogger(s.err, false, slog.LevelWarn)}
	var err error
	if opts.Fixed, err = v.recorded(); err != nil {
		return err
	}
	opened, err := v.open(ctx, s.err, opts)
	if err != nil {
		return err
	}
	again, err := opened.Orchestrator().Replay(ctx, v.RunID)
	if err != nil {
		return errors.Join(system.Advise(err), opened.Close())
	}
	if err := errors.Join(v.print(s, again), opened.Close()); err != nil {
		return err
	}
	return failIf(!again.Reproduced())
}

func (v *replayVerb) print(s *streams, again *orchestrator.Replayed) error {
	if v.JSON {
		line := replayed{Reproduced: again.Reproduced(), WantDigest: again.Want, Envelope: again.Outcome.Envelope}
		if again.Diverged != nil {
			line.Diverged = again.Diverged.Error()
		}
		return printLine(s.out, line)
	}
	if err := printEnvelope(s.out, again.Outcome.Envelope); err != nil {
		return err
	}
	switch {
	case again.Reproduced():
		fmt.Fprintf(s.err, "reproduced: %s\n", again.Want)
	case again.Diverged != nil:
		fmt.Fprintf(s.err, "airlock: the replay diverged: %v\n", again.Diverged)
	default:
		fmt.Fprintf(s.err, "airlock: every call was the same, but the result is %s, not %s\n", again.Outcome.Envelope.OutputDigest, again.Want)
	}
	return nil
}

// recorded returns the tools of the recorded run, so that no server is needed. Recordings of older
// versions do not contain the tools, so their replay needs the configured servers.
func (v *replayVerb) recorded() (*system.Fixed, error) {
	c, err := v.loadPlaces()
	if err != nil {
		return nil, err
	}
	directories, err := system.FindDirectories(c)
	if err != nil {
		return nil, err
	}
	if tree, err := findRun(directories.Audit, v.RunID); err == nil { // the beginning of an ID is enough
		v.RunID = tree.ID
	}
	recording, err := system.LoadRecording(directories, c.Replay, v.RunID)
	if errors.Is(err, replay.ErrNotFound) {
		return nil, &hinted{err, "airlock runs list shows the newest runs; recordings expire", ExitFailed}
	}
	if err != nil {
		return nil, err
	}
	snapshot, err := orchestrator.RecordedSnapshot(recording)
	if err != nil || snapshot == nil {
		return nil, err
	}
	return &system.Fixed{Snapshot: snapshot, Upstream: noServers{}}, nil
}

// noServers is the upstream of a replay and of the risk gateway, which call no servers.
type noServers struct{}

// Call returns an error.
func (noServers) Call(context.Context, string, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("no server is called here")
}
