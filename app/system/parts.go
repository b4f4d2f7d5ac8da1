package system

import (
	"cmp"
	"log/slog"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/copies"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/runs"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/caller"
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

// FindHosts sets the function that returns the processes of hosts that are connected over the network. It is called
// when a process wants to approve a call or to widen what agents can do, and must be safe for concurrent use.
func (s *System) FindHosts(find func() []int) { s.findHosts.Store(&find) }

func (s *System) connectedHosts() ([]int, error) {
	if find := s.findHosts.Load(); find != nil {
		return (*find)(), nil
	}
	return nil, nil
}

// hostsOnThisMachine returns the connected hosts of this process, and those of the other nodes of its cluster that run
// on this machine: a node asks about calls of their hosts, too.
func (s *System) hostsOnThisMachine() ([]int, error) {
	own, err := s.connectedHosts()
	if s.findHosts.Load() == nil || s.config.Cluster.Database == "" {
		return own, err
	}
	key, err := state.ClusterKey(s.config.Cluster.Key)
	if err != nil {
		return nil, err
	}
	others, err := approval.HostsInCluster(key.Recipient().String())
	return append(own, others...), err
}

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
