package system

import (
	"sync/atomic"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/state"
)

// hosts are the agents' hosts that are connected to this process.
type hosts struct {
	find    atomic.Pointer[func() []int] // see FindHosts
	cluster string                       // the name of the cluster in announcements; empty without one
}

// announce makes this process known to those that may not approve calls or widen what agents can do while it serves. It
// refuses a configuration that was never confirmed, unless a person has started this process.
func (s *System) announce(byPerson bool) error {
	if !byPerson {
		if err := rules.ConfirmFirst(s.config, s.directories.Home); err != nil {
			return err
		}
	}
	role := approval.Serves
	if s.opts.Host != 0 {
		role = approval.ServesHost
	}
	var err error
	if s.hosts.cluster, err = state.AnnouncedCluster(s.config.Cluster); err != nil {
		return err
	}
	end, err := approval.Announce(s.directories.Home, role, s.hostsOnThisMachine)
	if err != nil {
		return err
	}
	s.undo.Add(func() error { end(); return nil })
	if s.hosts.cluster == "" {
		return nil
	}
	endCluster, err := approval.AnnounceCluster(s.hosts.cluster, s.directories.Home, s.connectedHosts)
	if err != nil {
		return err
	}
	s.undo.Add(func() error { endCluster(); return nil })
	return nil
}

// FindHosts sets the function that returns the processes of hosts that are connected over the network. It is called
// when a process wants to approve a call or to widen what agents can do, and must be safe for concurrent use.
func (s *System) FindHosts(find func() []int) { s.hosts.find.Store(&find) }

func (s *System) connectedHosts() ([]int, error) {
	if find := s.hosts.find.Load(); find != nil {
		return (*find)(), nil
	}
	return nil, nil
}

// hostsOnThisMachine returns the connected hosts of this process, and those of the other nodes of its cluster that run
// on this machine: a node asks about calls of their hosts, too.
func (s *System) hostsOnThisMachine() ([]int, error) {
	own, err := s.connectedHosts()
	if s.hosts.find.Load() == nil || s.hosts.cluster == "" {
		return own, err
	}
	others, err := approval.HostsInCluster(s.hosts.cluster)
	return append(own, others...), err
}
