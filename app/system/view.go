package system

import (
	"context"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Snapshot returns the newest definitions of the tools that the caller sees. If the profile of the
// caller is unknown, or the caller may not see tools, it is empty.
func (s *System) Snapshot(who caller.Caller) *catalog.Snapshot {
	snapshot := s.catalog.Snapshot()
	view, err := s.broker.View(who, snapshot)
	shown := caller.Object{Kind: caller.Tool, Owner: caller.Owner{Profile: who.Profile}}
	if err != nil || !who.May(caller.People, caller.See, shown) {
		return snapshot.Within(nothing)
	}
	return view
}

// Shared returns the newest definitions of the tools of a caller without a separate profile.
func (s *System) Shared() *catalog.Snapshot {
	snapshot := s.catalog.Snapshot()
	view, err := s.broker.View(caller.Caller{Profile: s.opts.Profile}, snapshot)
	if err != nil {
		return snapshot.Within(nothing)
	}
	return view
}

// mayChange reports whether a caller may change a server or its tools: its profile shows the server, and
// it has the scope.
func (s *System) mayChange(who caller.Caller, serverID string) bool {
	o := caller.Object{Kind: caller.Server}
	if _, shown := s.Snapshot(who).Server(serverID); shown {
		o.Owner.Profile = who.Profile
	}
	return who.May(caller.People, caller.Change, o)
}

// nothing is the profile that shows no tools.
var nothing = &catalog.Profile{}

// ServerIDs returns the IDs of the configured servers that callers see, in order.
func (s *System) ServerIDs() []string {
	var ids []string
	for _, server := range upstreams.Seen(s.Config(), s.opts.Profile) {
		ids = append(ids, server.ID)
	}
	return ids
}

// Await waits until the snapshot has the tools of the named servers or their problems. It returns
// an error if ctx ends first.
func (s *System) Await(ctx context.Context, serverIDs ...string) error {
	return s.catalog.Await(ctx, serverIDs...)
}

// AwaitFor waits until the servers that a program may use with a profile have answered, no longer
// than a run of this program would wait. It returns an error only if ctx ends.
func (s *System) AwaitFor(ctx context.Context, code []byte, profile string) error {
	if s.opts.Fixed != nil {
		return nil
	}
	var starting []string
	for _, server := range upstreams.Seen(s.Config(), profile) {
		if slices.ContainsFunc(s.catalog.Snapshot().Missing(server.ID),
			func(m catalog.MissingServer) bool { return m.Starting }) {
			starting = append(starting, server.ID)
		}
	}
	if len(starting) == 0 {
		return nil
	}
	return s.awaitServers(ctx, code, starting...)
}

// unnamedTimeout is how long one run waits for servers that its program does not name.
const unnamedTimeout = 5 * time.Second

// awaitServers waits for the servers that a single run may use. It first waits at most
// unnamedTimeout for the servers with the IDs, or for all if there are no IDs. Then it waits for
// those that the program names until they have answered or failed.
func (s *System) awaitServers(ctx context.Context, code []byte, serverIDs ...string) error {
	limited, cancel := context.WithTimeout(ctx, unnamedTimeout)
	defer cancel()
	if err := s.catalog.Await(limited, serverIDs...); err == nil || ctx.Err() != nil {
		return err
	}
	named := orchestrator.StartingServers(s.catalog.Snapshot(), string(code))
	if len(named) == 0 {
		return nil
	}
	return s.catalog.Await(ctx, named...)
}
