package approval

import (
	"errors"
	"maps"
)

// host is the process of an agent's host that one of several sessions is of.
type host struct {
	session string
	pid     int
}

// AddHost says that a session is that of an agent's host, until the returned
// function is called: from within any such host no process can approve, whichever
// host's question it is.
func (d *Desk) AddHost(session string, pid int) (remove func()) {
	added := &host{session, pid}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosts[added] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.hosts, added)
	}
}

// apartFromHosts returns nil when a process has nothing to do with any of the hosts.
// One that has ended counts for the questions of its own session: its children can
// no longer be told.
func (d *Desk) apartFromHosts(pid int, session string) error {
	d.mu.Lock()
	hosts := maps.Clone(d.hosts)
	d.mu.Unlock()
	for h := range hosts {
		err := guard{host: h.pid}.check(pid)
		if errors.Is(err, errHostEnded) && h.session != session {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
