package system

import (
	"context"
	"slices"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/broker/upstream"
)

// serverChange is the difference between the connected servers and those of another configuration.
type serverChange struct {
	config  *config.Config // with credentials in place of references
	connect []upstream.Config
	ended   []string // IDs of the servers whose present connections end
	removed []string // of them, those that are not connected again
}

// change returns what has to change so that the servers of next are connected. It changes nothing,
// except that the credentials of next are redacted from now on.
func (c *Catalog) change(ctx context.Context, next *config.Config) (*serverChange, error) {
	if c.upstreams == nil { // the tools are fixed
		return &serverChange{config: next}, nil
	}
	resolved, err := ResolveSecrets(ctx, next)
	if err != nil {
		return nil, err
	}
	holdCredentials(c.opts.gate.all, resolved)
	before, after := *c.config.Load(), *resolved
	before.Servers, after.Servers = seen(&before, c.opts.Profile), seen(&after, c.opts.Profile)
	connect, removed := config.Reconnect(&before, &after)
	servers := slices.DeleteFunc(slices.Clone(after.Servers),
		func(s config.Server) bool { return !slices.Contains(connect, s.ID) })
	made := &serverChange{config: resolved, ended: slices.Concat(connect, removed), removed: removed}
	made.connect, err = c.upstreamConfigs(servers, Principal())
	return made, err
}

// apply connects and disconnects servers. Calls in flight are finished first. It does not wait for a
// server to answer.
func (c *Catalog) apply(ctx context.Context, change *serverChange) error {
	c.config.Store(change.config)
	if c.upstreams == nil || len(change.ended) == 0 {
		return nil
	}
	if err := c.upstreams.Replace(ctx, change.connect, change.removed); err != nil {
		return err
	}
	select {
	case <-c.opened:
		c.listAgain(ctx)
	default:
		c.publishSoon()
	}
	return nil
}
