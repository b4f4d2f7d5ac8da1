package upstreams

import (
	"context"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/upstream"
)

// ServerChange is the difference between the connected servers and those of another configuration.
type ServerChange struct {
	config  *config.Config // with credentials in place of references
	connect []upstream.Config
	Ended   []string // IDs of the servers whose present connections end
	removed []string // of them, those that are not connected again
}

// Change returns what has to change so that the servers of next are connected. It changes nothing,
// except that the credentials of next are redacted from now on.
func (c *Catalog) Change(ctx context.Context, next *config.Config) (*ServerChange, error) {
	if c.upstreams == nil { // the tools are fixed
		return &ServerChange{config: next}, nil
	}
	resolved, err := credentials.Resolve(ctx, next)
	if err != nil {
		return nil, err
	}
	credentials.Hold(c.opts.Redactors.All, resolved)
	before, after := *c.config.Load(), *resolved
	before.Servers, after.Servers = Seen(&before, c.opts.Profile), Seen(&after, c.opts.Profile)
	connect, removed := config.Reconnect(&before, &after)
	servers := slices.DeleteFunc(slices.Clone(after.Servers),
		func(s config.Server) bool { return !slices.Contains(connect, s.ID) })
	made := &ServerChange{config: resolved, Ended: slices.Concat(connect, removed), removed: removed}
	if made.connect, err = c.upstreamConfigs(servers, setup.Principal()); err != nil {
		return nil, err
	}
	for _, server := range made.connect {
		if err := server.Check(); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// Apply connects and disconnects servers. Calls in flight are finished first. It does not wait for a server to answer,
// and fails only if Airlock is ending.
func (c *Catalog) Apply(ctx context.Context, change *ServerChange) error {
	c.config.Store(change.config)
	if c.upstreams == nil || len(change.Ended) == 0 {
		return nil
	}
	if err := c.upstreams.Replace(ctx, change.connect, change.removed); err != nil {
		return err
	}
	select {
	case <-c.opened:
		c.ListAgain(ctx)
	default:
		c.publishSoon()
	}
	return nil
}
