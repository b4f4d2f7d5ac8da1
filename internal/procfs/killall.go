package procfs

import (
	"context"
	"time"
)

// killPause is how long killed processes have to end before they are looked for again.
const killPause = 2 * time.Millisecond

// KillMatching kills all other processes whose arguments match, including those started
// meanwhile, until none is left. It returns ctx's error if ctx is done first.
func KillMatching(ctx context.Context, match func(arguments []string) bool) error {
	for {
		pids, err := Matching(match)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			if err := Kill(pid); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(killPause):
		}
	}
}
