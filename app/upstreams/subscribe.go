package upstreams

import (
	"context"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Follow implements code.Changes.
func (s *Servers) Follow(lists func(before, now *catalog.Snapshot), updated func(owner, serverID, uri string)) {
	s.catalog.OnUpdates(lists, updated)
}

// Unsubscribe implements code.Changes.
func (s *Servers) Unsubscribe(ctx context.Context, who caller.Caller, serverID, uri string) error {
	if s.callers == nil { // the tools are fixed
		return nil
	}
	carrier, done, err := s.callers.For(who, nil, serverID)
	if err != nil {
		return err
	}
	defer done()
	if set, ok := carrier.(interface {
		Unsubscribe(ctx context.Context, serverID, uri string) error
	}); ok {
		return set.Unsubscribe(ctx, serverID, uri)
	}
	return nil
}
