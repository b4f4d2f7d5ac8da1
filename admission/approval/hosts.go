package approval

import (
	"errors"
	"maps"
)

// host is the host process of one of several sessions.
type host struct {
	session string
	pid     int
}

// AddHost registers the host process of a session until the returned function is called. Processes
// of any registered host cannot approve, even the questions of another host.
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

// apartFromHosts returns nil if a process is unrelated to all hosts. A host that has ended is only
// considered for the questions of its session, because its children can no longer be identified.
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
