package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/audit/clusterlog"
	"github.com/airlock-mcp/airlock/internal/cluster"
	"github.com/airlock-mcp/airlock/internal/objects"
)

// auditOptions returns the options of the configured audit log.
func auditOptions(d setup.Directories, c config.Audit) *audit.Options {
	o := &audit.Options{Keys: d.Keys, Keep: c.Keep, ClearArguments: c.ClearArguments}
	if c.KeepArguments > 0 {
		o.KeepArguments = &audit.ArgumentsOptions{Keep: c.KeepArguments, Size: c.ArgumentsSize}
	}
	if c.Witness != "" {
		o.Witnesses = []audit.WitnessOptions{{Address: c.Witness, Key: c.WitnessKey, Delay: c.WitnessDelay}}
	}
	return o
}

// ClusterLog verifies the log of the cluster, see clusterlog.Verify, and returns it with the nodes of the cluster.
func ClusterLog(ctx context.Context, c *config.Config, witnessed string) (report clusterlog.Report,
	nodes []cluster.Member, err error) {
	if c.Cluster.Database == "" {
		return report, nil, errNoCluster()
	}
	db, key, err := openCluster(ctx, c.Cluster)
	if err != nil {
		return report, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if report, err = clusterlog.Verify(ctx, db, key, witnessed); err != nil {
		return report, nil, err
	}
	nodes, err = cluster.List(ctx, db)
	return report, nodes, err
}

// MirrorCopies copies the records of a log into an empty directory, from the copies that the cluster has, see
// audit.Mirror. It returns clusterlog.ErrNoCopies if the log was never copied.
func MirrorCopies(ctx context.Context, c *config.Config, dir, origin string) (err error) {
	if c.Cluster.Objects == "" {
		return clusterlog.ErrNoCopies
	}
	store, err := objects.Open(c.Cluster.Objects)
	if err != nil {
		return err
	}
	db, key, err := openCluster(ctx, c.Cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	read, err := clusterlog.Copied(ctx, db, key, store, origin)
	if err != nil {
		return err
	}
	return audit.Mirror(dir, origin, read)
}

// WithLog opens the audit log for a command that does not open a system. Other processes may have
// the log open at the same time.
func WithLog(c *config.Config, use func(*audit.Log) error) (err error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return err
	}
	log, err := audit.Open(directories.Audit, auditOptions(directories, c.Audit))
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return use(log)
}

// recordAct records an act of the user of this process.
func recordAct(ctx context.Context, c *config.Config, what string) error {
	return WithLog(c, func(log *audit.Log) error {
		return log.Append(ctx, audit.Record{Kind: audit.KindOperator,
			Identity: audit.Identity{Principal: setup.Principal()}, Detail: what})
	})
}
