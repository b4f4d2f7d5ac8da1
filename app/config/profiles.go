package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/egress"
	"github.com/airlock-mcp/airlock/internal/nearest"
)

// Profile returns the profile with the name. The empty name means the default profile. The
// result is nil if there is no restriction. If no profile has the name, Profile returns a
// *ProfileError.
func (c *Config) Profile(name string) (*catalog.Profile, error) {
	name = cmp.Or(name, c.DefaultProfile)
	if name == "" {
		return nil, nil
	}
	var names []string
	for _, p := range c.Profiles {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return nil, &ProfileError{name, names}
}

// Network returns the hosts that runs of callers with a profile may ask for: none if the profile is unknown.
func (c *Config) Network(profile string) []egress.Host {
	p, err := c.Profile(profile)
	switch {
	case err != nil:
		return nil
	case p == nil || p.Network == nil:
		return c.Sandbox.Network
	}
	var hosts []egress.Host
	for _, text := range p.Network {
		if host, err := egress.ParseHost(text); err == nil { // it was read from one
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// Networks returns all hosts that runs of any caller may ask for, each once.
func (c *Config) Networks() []egress.Host {
	hosts := slices.Clone(c.Sandbox.Network)
	for _, p := range c.Profiles {
		for _, host := range c.Network(p.Name) {
			if !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// ProfileError is the error for an unknown name of a profile.
type ProfileError struct {
	Name  string
	Known []string
}

// Error is one sentence.
func (e *ProfileError) Error() string { return fmt.Sprintf("there is no profile %q", e.Name) }

// Hint returns the known names.
func (e *ProfileError) Hint() string {
	if len(e.Known) == 0 {
		return "the configuration has none: write some under the key profiles, or leave --profile out"
	}
	hint := "the profiles are " + strings.Join(e.Known, ", ")
	if best := nearest.Word(e.Name, e.Known); best != "" {
		hint = fmt.Sprintf("did you mean %q? %s", best, hint)
	}
	return hint
}

// maxProfileName is how many bytes a profile's name may have.
const maxProfileName = 64

// profiles reads the section profiles: the servers and tools that callers see.
func (d *decoder) profiles(c *Config) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		err := d.entries(n, path, func(key, val *yaml.Node) error {
			if !isProfileName(key.Value) {
				return d.fail(key, "use letters, digits, - and _", "%q is not a name for a profile", key.Value)
			}
			p, isDefault := &catalog.Profile{Name: key.Value}, false
			if err := d.object(val, join(path, key.Value), d.profileFields(p, &isDefault)); err != nil {
				return err
			}
			if len(p.Servers) == 0 {
				return d.fail(key, `name servers with their tools, for example files: [read_*], or servers: ["*"] `+
					`for all`,
					"%s shows no servers", join(path, key.Value))
			}
			if isDefault && c.DefaultProfile != "" {
				return d.fail(key, "keep one", "the profiles %q and %q are both the default", c.DefaultProfile, p.Name)
			}
			if isDefault {
				c.DefaultProfile = p.Name
			}
			c.Profiles = append(c.Profiles, p)
			return nil
		})
		slices.SortFunc(c.Profiles, func(a, b *catalog.Profile) int { return cmp.Compare(a.Name, b.Name) })
		return err
	}
}

// isProfileName reports whether a name can be used on every command line without quotes.
func isProfileName(name string) bool {
	outside := func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}
	return name != "" && len(name) <= maxProfileName && name[0] != '-' && !strings.ContainsFunc(name, outside)
}

func (d *decoder) profileFields(p *catalog.Profile, isDefault *bool) []field {
	return []field{
		{key: "servers", read: d.profileServers(p)},
		{key: "network", read: func(n *yaml.Node, path string) error {
			var hosts []egress.Host
			err := d.network(&hosts)(n, path)
			p.Network = []string{}
			for _, host := range hosts {
				p.Network = append(p.Network, host.String())
			}
			return err
		}},
		{key: "default", val: flag{isDefault}},
	}
}

// profileServers reads the servers of a profile: a list of servers with all their tools, or a
// mapping from servers to tools.
func (d *decoder) profileServers(p *catalog.Profile) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		if n.Kind == yaml.SequenceNode || n.Kind == yaml.AliasNode && n.Alias.Kind == yaml.SequenceNode {
			return d.items(n, path, func(n *yaml.Node, path string) error {
				id, err := d.pattern(n, path)
				p.Servers = append(p.Servers, catalog.ProfileServers{Server: id, Tools: []catalog.Pattern{"*"}})
				d.profiled = append(d.profiled, profiledServer{n, path, id})
				return err
			})
		}
		return d.entries(n, path, func(key, val *yaml.Node) error {
			at := join(path, key.Value)
			if key.Value == "" {
				return d.fail(key, "", "a server in %s has an empty name", path)
			}
			shown := catalog.ProfileServers{Server: catalog.Pattern(key.Value)}
			tools := func(n *yaml.Node, path string) error {
				tool, err := d.pattern(n, path)
				shown.Tools = append(shown.Tools, tool)
				return err
			}
			var err error
			if val.Kind == yaml.ScalarNode && !isNull(val) {
				err = tools(val, at) // files: "*"
			} else {
				err = d.items(val, at, tools)
			}
			if err == nil && len(shown.Tools) == 0 {
				err = d.fail(key, `write ["*"] for all of them, or leave the server out`, "%s names no tools", at)
			}
			p.Servers = append(p.Servers, shown)
			d.profiled = append(d.profiled, profiledServer{key, at, shown.Server})
			return err
		})
	}
}

// pattern reads one name or pattern.
func (d *decoder) pattern(n *yaml.Node, path string) (catalog.Pattern, error) {
	text, err := d.text(n, path)
	if err == nil && text == "" {
		err = d.fail(n, `write "*" for all`, "%s is an empty name", path)
	}
	return catalog.Pattern(text), err
}

// profiledServer is a position at which a profile names servers.
type profiledServer struct {
	node    *yaml.Node
	path    string
	pattern catalog.Pattern
}

// checkProfiles returns an error if a profile names a server that is not configured: the
// profile would show less than its author expects.
func (d *decoder) checkProfiles(c *Config) error {
	var ids []string
	for _, server := range c.Servers {
		ids = append(ids, server.ID)
	}
	for _, named := range d.profiled {
		id := string(named.pattern)
		if slices.ContainsFunc(ids, named.pattern.Fits) || d.left[id] {
			continue
		}
		if !named.pattern.IsPlain() {
			d.note(named.node, fmt.Sprintf("%s fits no server of mcpServers", named.path),
				"airlock profiles shows what each profile has")
			continue
		}
		advice := "add it to mcpServers, or remove it here"
		if best := nearest.Word(id, ids); best != "" {
			advice = fmt.Sprintf("did you mean %q?", best)
		}
		return d.fail(named.node, advice, "%s names the server %q, which mcpServers does not have", named.path, id)
	}
	return nil
}
