package listing

import (
	"context"

	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Server is a server as one node reaches it.
type Server struct {
	Node string // of a cluster
	upstreams.ServerState
}

// Servers returns the servers that a caller sees, of all nodes. unanswered are the nodes whose servers are missing.
func (l *Lists) Servers(ctx context.Context, who caller.Caller) (list []Server, unanswered []string, err error) {
	parts, unanswered, err := gather(ctx, l, kindServers, who, struct{}{}, l.ownServers)
	for _, p := range parts {
		for _, s := range p.list {
			list = append(list, Server{p.node, s})
		}
	}
	return list, unanswered, err
}

func (l *Lists) ownServers(who caller.Caller, _ struct{}) ([]upstreams.ServerState, error) {
	return l.opts.Servers(who), nil
}
