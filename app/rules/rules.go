// Package rules has the operator's rules: the configuration with its policy files. It reads them, asks a person to
// confirm what may permit more, and puts changes in force while Airlock serves.
package rules

import (
	"crypto/sha256"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/app/upstreams"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/policies"
)

// Rules are the rules in force. Its methods are safe for concurrent use, except OnConfig.
type Rules struct {
	opts Options

	mu      sync.Mutex                     // one reload at a time
	files   []policies.File                // as they were read
	sources [sha256.Size]byte              // of the policy files
	changed func(before, c *config.Config) // called when another configuration is in force; nil is not
	waits   *trust.Content                 // what waits for a person's confirmation; nil if nothing does

	config  atomic.Pointer[config.Config]
	refused atomic.Pointer[upstreams.Notice] // why the files as they are now are not in force; nil if they are
}

// Options are the options of New. Admission, Servers, State, Log, Notify and Logger are required.
type Options struct {
	Directories setup.Directories
	// Reread reads the configuration file again. If it is nil, only policy files are read again.
	Reread  func() (*config.Config, error)
	Notify  func(upstreams.Notice) // called with notices for people; must be safe for concurrent use
	Serving bool                   // a change that may permit more needs a person's confirmation
	Host    int                    // the process ID of the agent host that is served, or 0
	Profile string                 // of all callers; if it is empty, each caller has its own or none

	State     *state.State
	Log       *audit.Log
	Admission *admission.Service // decides by the rules
	Servers   *upstreams.Servers
	Clean     func(text string) string // removes secrets
	Logger    *slog.Logger
}

// New returns the rules that Read has read from a configuration, which are in force.
func New(c *config.Config, read Reading, opts Options) *Rules {
	r := &Rules{opts: opts, files: read.files, sources: sources(read.files)}
	r.config.Store(c)
	return r
}

// Config returns the configuration that is in force.
func (r *Rules) Config() *config.Config { return r.config.Load() }

// Pending returns why the configuration and the policies as they are now are not in force, and what
// to do about it. It returns false if they are in force.
func (r *Rules) Pending() (upstreams.Notice, bool) {
	if refused := r.refused.Load(); refused != nil {
		return *refused, true
	}
	return upstreams.Notice{}, false
}

// OnConfig sets a function that is called after another configuration was put in force. It must be
// called before Watch and Reload.
func (r *Rules) OnConfig(changed func(before, now *config.Config)) { r.changed = changed }

// RuleSet returns the rules that are in force, with the tools that the caller sees.
func (r *Rules) RuleSet(who caller.Caller) (admission.RuleSet, error) {
	r.mu.Lock()
	c, files := r.Config(), r.files
	r.mu.Unlock()
	operator, err := operatorSettings(c)
	return admission.RuleSet{Files: files, Operator: operator, Snapshot: r.opts.Servers.Snapshot(who),
		Roles: RoleNames(c)}, err
}

// Roles returns the roles of a caller.
func (r *Rules) Roles(who caller.Caller) []string { return auth.RolesOf(r.Config().Auth.Roles, who) }

// HasRoles reports whether a caller still has all roles that it had.
func (r *Rules) HasRoles(who caller.Caller) bool {
	has := r.Roles(who)
	return !slices.ContainsFunc(who.Roles, func(role string) bool { return !slices.Contains(has, role) })
}

// WaitingServers returns the IDs of servers that the configuration file has and that are not in force, because the
// file waits for a person's confirmation or for a restart. It returns none to a caller who may not see the
// configuration.
func (r *Rules) WaitingServers(who caller.Caller) (waiting []string) {
	_, pending := r.Pending()
	if !pending || r.opts.Reread == nil ||
		!who.May(caller.People, caller.See, caller.Object{Kind: caller.Configuration}) {
		return nil
	}
	next, err := r.opts.Reread()
	if err != nil { // Pending has the reason
		return nil
	}
	for _, server := range next.Servers {
		if _, found := r.Config().Server(server.ID); !found {
			waiting = append(waiting, server.ID)
		}
	}
	return waiting
}
