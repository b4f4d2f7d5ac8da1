package system

import (
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/state"
)

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
	end, err := approval.Announce(s.directories.Home, role, s.hostsOnThisMachine)
	if err != nil {
		return err
	}
	s.undo.Add(func() error { end(); return nil })
	endCluster, err := s.announceCluster()
	if err != nil {
		return err
	}
	s.undo.Add(func() error { endCluster(); return nil })
	return nil
}

// announceCluster makes this process known to state.WidenCheck.
func (s *System) announceCluster() (end func(), err error) {
	if s.config.Cluster.Database == "" {
		return func() {}, nil
	}
	key, err := state.ClusterKey(s.config.Cluster.Key)
	if err != nil {
		return nil, err
	}
	return approval.AnnounceCluster(key.Recipient().String(), s.directories.Home, s.connectedHosts)
}

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
