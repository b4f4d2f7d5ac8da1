package cli

import (
	"context"
	"errors"
	"fmt"

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
	system, err := open(ctx, v.configFlag, s.err, purpose{})
	if err != nil {
		return err
	}
	replayed, err := system.orchestrator.Replay(ctx, v.RunID)
	if errors.Is(err, replay.ErrNotFound) {
		err = &hinted{err, "airlock audit tail lists the newest runs; recordings expire", ExitFailed}
	}
	if err != nil {
		return errors.Join(advise(err), system.Close())
	}
	if err := errors.Join(printEnvelope(s.out, replayed.Outcome.Envelope), system.Close()); err != nil {
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
