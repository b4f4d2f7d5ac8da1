package system

import (
	"context"
	"errors"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/audit/witness"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// clusterDelay is how long calls are allowed while the database of the cluster lacks a checkpoint. A node that does not
// reach the database ends earlier, with its lease.
const clusterDelay = time.Minute

// openLog opens the audit log of this process. The checkpoints of a node go to the log of its cluster, too.
func (s *System) openLog(ctx context.Context) (err error) {
	opts := state.AuditOptions(s.directories, s.config.Audit)
	if s.state.Joins() {
		shared, err := s.clusterLog(ctx)
		if err != nil {
			return err
		}
		delay := clusterDelay
		if s.config.Audit.Durability == config.Replicated {
			delay = 0
		}
		s.undo.Add(shared.Close)
		opts.Witnesses = append(opts.Witnesses, audit.WitnessOptions{Witness: shared, Delay: delay})
	}
	s.log, err = audit.Open(s.directories.Audit, opts)
	if errors.Is(err, witness.ErrConflict) {
		return &setup.Error{Err: err, Advice: "look for a copy of the log with the missing records; `airlock audit " +
			"verify` shows what this one has; to begin a new log, move the directory and its position away as evidence"}
	}
	return err
}

func (s *System) clusterLog(ctx context.Context) (*clusterlog.Log, error) {
	db, err := s.state.Open(ctx)
	if err != nil {
		return nil, err
	}
	key, err := s.state.Identity()
	if err != nil {
		return nil, err
	}
	opts := clusterlog.Options{Node: s.Node().Name(), Key: key, Logger: s.opts.Logger}
	if c := s.config.Audit; c.Witness != "" {
		if opts.Witness, err = witness.Open(c.Witness, c.WitnessKey); err != nil {
			return nil, err
		}
	}
	if c := s.config; c.Cluster.Objects != "" {
		store, err := objects.Open(c.Cluster.Objects)
		if err != nil {
			return nil, err
		}
		opts.Copies = &clusterlog.Copies{Dir: s.directories.Audit, Objects: store, Keep: c.Audit.Keep,
			Tail: c.Audit.Durability == config.Replicated}
	}
	return clusterlog.New(db, opts), nil
}
