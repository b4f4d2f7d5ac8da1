package upstreams

import (
	"context"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
)

var _ broker.Definitions = (*Catalog)(nil)

// Current returns a snapshot with the definition of a tool as its server gives it, not as a cache
// has it. A tool whose definition changed since it was first seen is withheld. If again is set, the
// server is asked for its tools first. Otherwise an old list is only refreshed in the background,
// for the next call.
func (c *Catalog) Current(ctx context.Context, serverID, name string, again bool) (*catalog.Snapshot, error) {
	if c.upstreams == nil {
		return c.Snapshot(), nil
	}
	digest, err := c.upstreams.Digest(ctx, serverID, name, again)
	if err != nil {
		return nil, err
	}
	tool, ok := c.Snapshot().Tool(serverID, name)
	if !ok || tool.Digest != digest && (again || !tool.Withheld) {
		c.ListAgain(ctx) // the snapshot does not have the newest list yet
	}
	return c.Snapshot(), nil
}
