package system

import (
	"context"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// Node returns the node of a cluster that this process is, or nil. It is nil before OpenAgents.
func (s *System) Node() *cluster.Node { return s.state.Node() }

// ReportLoad has the other nodes of the cluster know how busy the sandboxes of this one are. It is called when the
// sandboxes are open.
func (s *System) ReportLoad(ctx context.Context) {
	s.Node().ReportLoad(ctx, func() cluster.Load {
		now := s.sandboxes.Load()
		return cluster.Load{Busy: now.InUse + now.Waiting, Sandboxes: now.Most}
	})
}

// Lost returns a channel that is closed when another process has replaced this node of the cluster. It is nil without
// a cluster.
func (s *System) Lost() <-chan struct{} { return s.state.Node().Lost() }

// announceCluster makes this process known to MayWidenCluster.
func (s *System) announceCluster() (end func(), err error) {
	if s.config.Cluster.Database == "" {
		return func() {}, nil
	}
	key, err := state.ClusterKey(s.config.Cluster.Key)
	if err != nil {
		return nil, err
	}
	return approval.AnnounceCluster(key.Recipient().String(), s.directories.Home, s.connectedHosts)
}
