package system

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/engines"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runlog"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/broker/taint"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/cluster"
)

// Admission returns the decisions about all acts, until the system is closed.
func (s *System) Admission() *admission.Service { return s.admission }

// Profile returns the name of the profile that all callers have, or "".
func (s *System) Profile() string { return s.opts.Profile }

// Runs returns the registry of all runs.
func (s *System) Runs() *runs.Registry { return s.runs }

// Face returns the configuration of the interface for agent hosts.
func (s *System) Face() config.Face { return s.config.Face }

// Attachments returns the store of files that runs attached.
func (s *System) Attachments() copies.RunFiles {
	return copies.RunFiles{Store: s.attachments, Copies: &s.copies, Node: s.Node, Logger: s.opts.Logger}
}

// Orchestrator returns the orchestrator, which executes runs until the system is closed.
func (s *System) Orchestrator() *orchestrator.Orchestrator { return s.orchestrator }

// Approvals returns the desk where calls wait for a person.
func (s *System) Approvals() *approval.Desk { return s.desk }

// Logger returns the logger of the system. It redacts secrets.
func (s *System) Logger() *slog.Logger { return s.opts.Logger }

// Packages are the packages that the configuration installs in the images.
type Packages struct{ Python, Node []string }

// NetworkOf returns the hosts that runs of a caller may ask for.
func (s *System) NetworkOf(who caller.Caller) []egress.Host {
	return s.Config().Network(cmp.Or(who.Profile, s.opts.Profile))
}

// Network returns the hosts that runs may ask for, as NAME:PORT: those of the profile that all callers have, or of
// every profile.
func (s *System) Network() []string {
	listed := s.config.Networks()
	if s.opts.Profile != "" {
		listed = s.config.Network(s.opts.Profile)
	}
	hosts := make([]string, len(listed))
	for i, host := range listed {
		hosts[i] = host.String()
	}
	return hosts
}

// Packages returns the packages that are installed for code.
func (s *System) Packages() Packages {
	return Packages{s.config.Images.Python.Packages, s.config.Images.Node.Packages}
}

// Directories returns the directories of the system.
func (s *System) Directories() setup.Directories { return s.directories }

// Gate returns the redactor for messages between the system and its host.
func (s *System) Gate() *credentials.Gate { return credentials.NewGate(s.opts.redactors.Definitions) }

// Hold redacts a credential from everything that leaves Airlock.
func (s *System) Hold(credential string) { s.opts.redactors.All.Hold(credential) }

// Authority returns what decides whether callers may still act.
func (s *System) Authority() *auth.Deferred { return &s.authority }

// Verify returns the verifier, which can be used until the system is closed.
func (s *System) Verify() *engines.Verifier { return s.verifier }

// Verifications returns the verifications, which can be used until the system is closed.
func (s *System) Verifications() engines.Verifications {
	return engines.Verifications{Verifier: s.verifier, Log: s.log}
}

// RunLog returns the runs of the system's audit log.
func (s *System) RunLog() *runlog.Log { return s.runLog }

// Node returns the node of a cluster that this process is, or nil. It is nil before OpenAgents.
func (s *System) Node() *cluster.Node { return s.state.Node() }

// ReportLoad has the other nodes of the cluster know how busy the sandboxes of this one are. It is called when the
// sandboxes are open.
func (s *System) ReportLoad(ctx context.Context) {
	s.Node().ReportLoad(ctx, func() cluster.Load {
		now := s.sandboxes.Load()
		return cluster.Load{Busy: now.InUse + now.Waiting, Sandboxes: now.Most}
	})
}

// Lost returns a channel that is closed when another process has replaced this node of the cluster. It is nil without
// a cluster.
func (s *System) Lost() <-chan struct{} { return s.state.Node().Lost() }

// Taint returns the store of the servers that conversations have read.
func (s *System) Taint() *taint.Store { return taint.New(s.state.Open, nil) }
