package approval

import (
	"errors"
	"maps"
	"slices"

	"github.com/airlock-mcp/airlock/internal/procfs"
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
	hosts := slices.Collect(maps.Keys(d.hosts))
	d.mu.Unlock()
	if d.opts.Hosts != nil {
		others, err := d.opts.Hosts()
		if err != nil {
			return err
		}
		for _, found := range others {
			hosts = append(hosts, &host{pid: found})
		}
	}
	for _, h := range hosts {
		err := guard{host: h.pid}.check(pid)
		if errors.Is(err, errHostEnded) && (h.session == "" || h.session != session) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// HostOf returns the agent's host of a process that speaks to Airlock over the network: the process, or the one that
// started it to speak to it over its standard input. A program that starts people's sessions is not a host, and neither
// is a person's shell: it gives each of its jobs a separate process group.
func HostOf(client int) int {
	starter, err := procfs.Starter(client)
	if err != nil || starter <= 1 {
		return client
	}
	c, err := readProcess(client)
	if err != nil {
		return client
	}
	s, err := readProcess(starter)
	if err != nil || startsSessions(s) || c.session == s.session && c.group != s.group {
		return client
	}
	return starter
}
