package contained

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/images"
)

// Proposal is a sandbox for a server that has none.
type Proposal struct {
	Server    string
	Problem   string // why the server cannot be contained; empty if it can
	Program   config.Program
	Variables []string // names of the variables that it gets, sorted
	Mounts    []config.ServerMount
	Network   []egress.Host
	// Left are paths and addresses that it was given and that no sandbox can have, each with the reason.
	Left []string
}

// Propose returns a sandbox for a stdio server with what its arguments and variables name: directories, read-only, and
// the hosts of addresses. References of the configuration must be expanded; credentials need not be resolved.
func Propose(server config.Server) Proposal {
	p := Proposal{Server: server.ID, Variables: slices.Sorted(maps.Keys(server.Env))}
	program, err := server.Program()
	if err != nil {
		p.Problem = err.Error()
		return p
	}
	p.Program = program
	values := program.Args
	if program.Project != "" {
		values = values[min(1, len(values)):] // the script's project is mounted anyway
	}
	for _, name := range p.Variables {
		values = append(slices.Clone(values), server.Env[name].Reveal())
	}
	for _, value := range values {
		if _, after, found := strings.Cut(value, "="); found && strings.HasPrefix(value, "-") {
			value = after
		}
		p.take(value)
	}
	return p
}

// take adds a directory or the host of an address.
func (p *Proposal) take(value string) {
	if u, err := url.Parse(value); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
		host, err := egress.ParseHost(u.Hostname() + ":" + port)
		switch {
		case err != nil || host.Name == "localhost":
			p.Left = append(p.Left, u.Hostname()+": only names of hosts on the internet can be reached")
		case !slices.Contains(p.Network, host):
			p.Network = append(p.Network, host)
		}
		return
	}
	if !filepath.IsAbs(value) {
		return
	}
	info, err := os.Stat(value)
	if err != nil {
		return
	}
	value = filepath.Clean(value)
	real, err := filepath.EvalSymlinks(value)
	switch {
	case !info.IsDir():
		p.Left = append(p.Left, value+": mount a directory that has this file")
	case err != nil || !images.Mountable(value):
		p.Left = append(p.Left, value+": no mount can be there, only below "+strings.Join(images.MountDirs(), ", "))
	default:
		p.mount(config.ServerMount{Path: real, At: value})
	}
}

// mount adds a mount, unless there is one at the same path.
func (p *Proposal) mount(m config.ServerMount) {
	if !slices.ContainsFunc(p.Mounts, func(other config.ServerMount) bool { return other.At == m.At }) {
		p.Mounts = append(p.Mounts, m)
	}
}

// Settings returns the value of servers.NAME.sandbox.
func (p Proposal) Settings() any {
	box := map[string]any{}
	if len(p.Network) > 0 {
		hosts := make([]string, len(p.Network))
		for i, host := range p.Network {
			hosts[i] = host.String()
		}
		box["network"] = hosts
	}
	var mounts []any
	for _, m := range p.Mounts {
		switch {
		case m.At == m.Path && !m.Writable:
			mounts = append(mounts, m.Path)
		case m.At == m.Path:
			mounts = append(mounts, map[string]any{"path": m.Path, "writable": true})
		case m.Writable:
			mounts = append(mounts, map[string]any{"path": m.Path, "at": m.At, "writable": true})
		default:
			mounts = append(mounts, map[string]any{"path": m.Path, "at": m.At})
		}
	}
	if len(mounts) > 0 {
		box["mounts"] = mounts
	}
	if len(box) == 0 {
		return true
	}
	return box
}

// Rules returns the policies that permit the hosts of the proposal, or "".
func (p Proposal) Rules() string {
	var b strings.Builder
	for _, host := range p.Network {
		fmt.Fprintf(&b, "@id(%q)\npermit (principal == ContainedServer::%q, action == Action::\"connect\", resource)\n"+
			"when { resource.name == %q && resource.port == %d };\n",
			"connect."+p.Server+"."+host.String(), p.Server, host.Name, host.Port)
	}
	return b.String()
}
