package system

import (
	"context"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
)

var _ broker.Definitions = (*Catalog)(nil)

// Current returns the snapshot in force, with a tool as its server gives it, not
// as a cache has it, and withheld where that is not what was seen before. Where
// again is set the server is asked for its tools.
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
		c.listAgain(ctx) // the snapshot does not have the newest list yet
	}
	return c.Snapshot(), nil
}
