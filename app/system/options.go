package system

import (
	"context"
	"log/slog"
	"net"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
)

// Options are the options of Open. Version is required.
type Options struct {
	Version string       // Airlock's own, as records and servers see it
	Logger  *slog.Logger // nil logs nothing
	// Notify is called with notices for people, and must be safe for concurrent use. If it is nil,
	// notices are dropped.
	Notify func(upstreams.Notice)
	// Reread reads the configuration file again, for Reload and Watch. If it is nil, only policy
	// files are read again.
	Reread func() (*config.Config, error)
	// Serving keeps sandboxes ready for many runs.
	Serving bool
	// Environ is the environment to check for variables that load code into programs. If Thorough
	// is set, whole images are read and checked before anything is opened.
	Environ  []string
	Thorough bool
	// Host is the process ID of the agent host that is served, or 0. Processes that belong to the
	// host may not answer approvals.
	Host int
	// Directories replace the configured directories if not nil.
	Directories *setup.Directories
	// Code is the program if the system is opened for only one run. The system waits only briefly
	// for servers that the program does not name.
	Code []byte
	// Durable has suspended runs go on in the next process with the same state directory. Only one process of it may
	// be durable.
	Durable bool
	// Tools is the source of the first list of tools.
	Tools upstreams.ToolSource
	// Profile is the profile of all callers; servers outside of it are not started. If it is empty,
	// each caller has its own profile or none.
	Profile string
	// Dial opens the permitted connections of code and contained servers; nil means to public addresses only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Trial is the trial of a contained server; nil means none.
	Trial *contained.Trial
	// Fixed replaces the configured servers. If it is nil, the configured servers are connected.
	Fixed *Fixed

	redactors *upstreams.Redactors // set by withDefaults
}

// Fixed has tools whose calls this process answers itself.
type Fixed struct {
	Snapshot *catalog.Snapshot
	Upstream broker.Upstream
}

// withDefaults sets the defaults of missing options.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Notify == nil {
		o.Notify = func(upstreams.Notice) {}
	}
	o.redactors = upstreams.NewRedactors()
	o.Logger = slog.New(o.redactors.All.Handler(o.Logger.Handler()))
	notify := o.Notify
	o.Notify = func(n upstreams.Notice) {
		n.Text, n.Hint = o.redactors.All.Text(n.Text), o.redactors.All.Text(n.Hint)
		notify(n)
	}
	return o
}

// OpenCatalog opens the servers of a configuration for a command that does not open a system. It uses the options
// Version, Logger, Notify, Tools and Profile. The caller must close the catalog.
func OpenCatalog(ctx context.Context, c *config.Config, opts Options) (*upstreams.Catalog, error) {
	return upstreams.Open(ctx, c, opts.withDefaults().ofServers(nil))
}

// ofServers returns the options of the connected servers. If there is no state, the catalog opens it.
func (o Options) ofServers(shared *state.State) upstreams.Options {
	return upstreams.Options{
		Version: o.Version, Logger: o.Logger, Notify: o.Notify, Serving: o.Serving, Tools: o.Tools, Profile: o.Profile,
		Dial: o.Dial, Trial: o.Trial, Redactors: o.redactors, State: shared,
	}
}
