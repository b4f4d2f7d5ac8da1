package state

import (
	"context"
	"errors"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker/replay"
)

// EraseArguments erases the kept arguments of a person's calls, and the recordings of the person's
// runs, which contain the same arguments. It returns the number of removed recordings. It records the
// erasure first, as an act of the user of this process.
func EraseArguments(ctx context.Context, c *config.Config, e *audit.Erasure) (recordings int, err error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return 0, err
	}
	e.By = audit.Identity{Principal: setup.Principal()}
	err = WithLog(c, func(log *audit.Log) error {
		return log.EraseArguments(ctx, directories.Audit, directories.Keys, e)
	})
	if err != nil {
		return 0, err
	}
	errs := []error{withCopies(ctx, c, func(all *copies.Copies) (err error) {
		for _, run := range e.Runs {
			err = errors.Join(err, all.Remove(ctx, run, kindRecording))
		}
		return err
	})}
	for _, run := range e.Runs {
		switch err := replay.Remove(directories.Recordings, run); {
		case err == nil:
			recordings++
		case !errors.Is(err, replay.ErrNotFound):
			errs = append(errs, err)
		}
	}
	return recordings, errors.Join(errs...)
}
