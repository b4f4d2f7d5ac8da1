package upstreams

import (
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/runner/runsc"
)

// Containment is the sandbox of a server.
type Containment struct {
	MayReach []string // the hosts of its configuration, as NAME:PORT; the policies decide about each connection
	Mounts   []string // directories of this host; the writable ones end with " (writable)"
	contained.State
}

// ContainmentOf describes the sandbox of a configured server, without what it has done. It returns nil if the server
// has none.
func ContainmentOf(server config.Server) *Containment {
	box := server.Settings.Sandbox
	if box == nil {
		return nil
	}
	c := &Containment{}
	for _, host := range box.Network {
		c.MayReach = append(c.MayReach, host.String())
	}
	for _, m := range box.Mounts {
		text := m.Path
		if m.Writable {
			text += " (writable)"
		}
		if !runsc.MountsConfined() {
			text += " (its file server is not confined: this kernel has no Landlock)"
		}
		c.Mounts = append(c.Mounts, text)
	}
	return c
}
