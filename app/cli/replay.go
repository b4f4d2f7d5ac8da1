package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/broker/replay"
)

type replayVerb struct {
	configFlag
	RunID string `arg:"" name:"run" help:"The recorded run's ID."`
}

// Run makes the run again, prints its envelope, and says on stderr whether it
// gave the same result, or at which call it went another way. Exit code 0 means
// the same result.
func (v *replayVerb) Run(ctx context.Context, s *streams) error {
	opened, err := v.open(ctx, s.err, system.Options{Logger: newLogger(s.err, false, slog.LevelWarn)})
	if err != nil {
		return err
	}
	replayed, err := opened.Orchestrator().Replay(ctx, v.RunID)
	if errors.Is(err, replay.ErrNotFound) {
		err = &hinted{err, "airlock audit tail lists the newest runs; recordings expire", ExitFailed}
	}
	if err != nil {
		return errors.Join(system.Advise(err), opened.Close())
	}
	if err := errors.Join(printEnvelope(s.out, replayed.Outcome.Envelope), opened.Close()); err != nil {
		return err
	}
	switch {
	case replayed.Reproduced():
		fmt.Fprintf(s.err, "reproduced: %s\n", replayed.Want)
		return nil
	case replayed.Diverged != nil:
		fmt.Fprintf(s.err, "airlock: the replay diverged: %v\n", replayed.Diverged)
	default:
		fmt.Fprintf(s.err, "airlock: every call was the same, but the result is %s, not %s\n", replayed.Outcome.Envelope.OutputDigest, replayed.Want)
	}
	return exitError(ExitFailed)
}
