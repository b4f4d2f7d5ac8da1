package system

import (
	"context"

	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/database"
)

// startCopies copies the files of runs until stop is called, if this node has an object store.
func (s *System) startCopies(ctx context.Context, db *database.DB) (stop func(), err error) {
	if s.config.Cluster.Objects == "" {
		return func() {}, nil
	}
	key, err := s.state.Identity()
	if err != nil {
		return nil, err
	}
	c, err := state.NewCopies(s.config, db, key, s.Node().Name(), s.recordings, s.attachments, s.opts.Logger)
	if err != nil {
		return nil, err
	}
	s.copies.Store(c)
	return c.Start(ctx), nil
}
