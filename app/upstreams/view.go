package upstreams

import (
	"context"
	"slices"
	"time"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/oauth"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// Servers are the connected servers as callers see them: their tools, states and sign-ins, and what a caller may change
// about them. Its methods are safe for concurrent use.
type Servers struct {
	catalog *Catalog
	callers *Callers // nil if the tools are fixed
	opts    ServersOptions
}

// ServersOptions are the options of NewServers. Only Receiver may be nil.
type ServersOptions struct {
	Config    func() *config.Config // the configuration in force
	Admission *admission.Service    // has the profiles
	State     *state.State
	Log       *audit.Log
	Receiver  *oauth.Receiver // see Servers.Receiver
}

// NewServers returns the servers of a catalog, which must stay open. callers is nil if the tools are fixed.
func NewServers(c *Catalog, callers *Callers, opts ServersOptions) *Servers {
	return &Servers{c, callers, opts}
}

// Catalog returns the connected servers with the definitions of their tools.
func (s *Servers) Catalog() *Catalog { return s.catalog }

// SignIns returns what signs people in to servers while their calls wait.
func (s *Servers) SignIns() broker.SignIns { return signIns{s} }

// Apply puts a change in force that Catalog.Change has prepared.
func (s *Servers) Apply(ctx context.Context, change *ServerChange) error {
	if err := s.catalog.Apply(ctx, change); err != nil {
		return err
	}
	if s.callers != nil {
		s.callers.Forget(change.Ended...)
	}
	return nil
}

// Snapshot returns the newest definitions of the tools that the caller sees. If the profile of the
// caller is unknown, or the caller may not see tools, it is empty.
func (s *Servers) Snapshot(who caller.Caller) *catalog.Snapshot {
	snapshot := s.catalog.Snapshot()
	view, err := s.opts.Admission.View(who, snapshot)
	shown := caller.Object{Kind: caller.Tool, Owner: caller.Owner{Profile: who.Profile}}
	if err != nil || !who.May(caller.People, caller.See, shown) {
		return snapshot.Within(nothing)
	}
	return view
}

// Shared returns the newest definitions of the tools of a caller without a separate profile.
func (s *Servers) Shared() *catalog.Snapshot {
	snapshot := s.catalog.Snapshot()
	view, err := s.opts.Admission.View(caller.Caller{Profile: s.catalog.opts.Profile}, snapshot)
	if err != nil {
		return snapshot.Within(nothing)
	}
	return view
}

// MayChange reports whether a caller may change a server or its tools: its profile shows the server, and
// it has the scope.
func (s *Servers) MayChange(who caller.Caller, serverID string) bool {
	o := caller.Object{Kind: caller.Server}
	if _, shown := s.Snapshot(who).Server(serverID); shown {
		o.Owner.Profile = who.Profile
	}
	return who.May(caller.People, caller.Change, o)
}

// nothing is the profile that shows no tools.
var nothing = &catalog.Profile{}

// ServerIDs returns the IDs of the configured servers that callers see, in order.
func (s *Servers) ServerIDs() []string {
	var ids []string
	for _, server := range Seen(s.opts.Config(), s.catalog.opts.Profile) {
		ids = append(ids, server.ID)
	}
	return ids
}

// Await waits until the snapshot has the tools of the named servers or their problems. It returns
// an error if ctx ends first.
func (s *Servers) Await(ctx context.Context, serverIDs ...string) error {
	return s.catalog.Await(ctx, serverIDs...)
}

// AwaitFor waits until the servers that a program may use with a profile have answered, no longer
// than a run of this program would wait. It returns an error only if ctx ends.
func (s *Servers) AwaitFor(ctx context.Context, code []byte, profile string) error {
	if s.catalog.upstreams == nil {
		return nil
	}
	var starting []string
	for _, server := range Seen(s.opts.Config(), profile) {
		if slices.ContainsFunc(s.catalog.Snapshot().Missing(server.ID),
			func(m catalog.MissingServer) bool { return m.Starting }) {
			starting = append(starting, server.ID)
		}
	}
	if len(starting) == 0 {
		return nil
	}
	return s.catalog.AwaitNamed(ctx, code, starting...)
}

// unnamedTimeout is how long one run waits for servers that its program does not name.
const unnamedTimeout = 5 * time.Second

// AwaitNamed waits for the servers that a single run may use. It first waits at most
// unnamedTimeout for the servers with the IDs, or for all if there are no IDs. Then it waits for
// those that the program names until they have answered or failed.
func (c *Catalog) AwaitNamed(ctx context.Context, code []byte, serverIDs ...string) error {
	limited, cancel := context.WithTimeout(ctx, unnamedTimeout)
	defer cancel()
	if err := c.Await(limited, serverIDs...); err == nil || ctx.Err() != nil {
		return err
	}
	named := orchestrator.StartingServers(c.Snapshot(), string(code))
	if len(named) == 0 {
		return nil
	}
	return c.Await(ctx, named...)
}
