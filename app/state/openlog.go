package state

import (
	"context"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/cleanup"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// clusterDelay is how long calls are allowed while the database of the cluster lacks a checkpoint. A node that does not
// reach the database ends earlier, with its lease.
const clusterDelay = time.Minute

// OpenLog opens the audit log of this process, which undo closes. The checkpoints of a node go to the log of its
// cluster, too.
func (s *State) OpenLog(ctx context.Context, d setup.Directories, c *config.Config, undo *cleanup.Stack) (*audit.Log,
	error) {
	opts := auditOptions(d, c.Audit)
	if s.joins() {
		shared, err := s.clusterLog(ctx, d, c)
		if err != nil {
			return nil, err
		}
		delay := clusterDelay
		if c.Audit.Durability == config.Replicated {
			delay = 0
		}
		undo.Add(shared.Close)
		opts.Witnesses = append(opts.Witnesses, audit.WitnessOptions{Witness: shared, Delay: delay})
	}
	log, err := audit.Open(d.Audit, opts)
	if errors.Is(err, witness.ErrConflict) {
		return nil, &setup.Error{Err: err, Advice: "look for a copy of the log with the missing records; `airlock " +
			"audit verify` shows what this one has; to begin a new log, move the directory and its position away as " +
			"evidence"}
	}
	if err != nil {
		return nil, err
	}
	undo.Add(log.Close)
	return log, nil
}

func (s *State) clusterLog(ctx context.Context, d setup.Directories, c *config.Config) (*clusterlog.Log, error) {
	db, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	key, err := s.Identity()
	if err != nil {
		return nil, err
	}
	opts := clusterlog.Options{Node: s.Node().Name(), Key: key, Logger: s.opts.Logger}
	if c.Audit.Witness != "" {
		if opts.Witness, err = witness.Open(c.Audit.Witness, c.Audit.WitnessKey); err != nil {
			return nil, err
		}
	}
	if c.Cluster.Objects != "" {
		store, err := objects.Open(c.Cluster.Objects)
		if err != nil {
			return nil, err
		}
		opts.Copies = &clusterlog.Copies{Dir: d.Audit, Objects: store, Keep: c.Audit.Keep,
			Tail: c.Audit.Durability == config.Replicated}
	}
	return clusterlog.New(db, opts), nil
}
