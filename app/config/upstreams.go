package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/nearest"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// servers reads mcpServers. It skips disabled servers and Airlock itself.
func (d *decoder) servers(c *Config) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		modules := map[string]string{} // module name → ID
		err := d.entries(n, path, func(key, val *yaml.Node) error {
			if err := d.serverID(key, path); err != nil {
				return err
			}
			noted := len(d.findings)
			s, disabled, err := d.server(key, val, join(path, key.Value))
			if err != nil {
				return err
			}
			if disabled {
				d.findings = d.findings[:noted] // findings about a disabled server are dropped
			}
			if disabled || d.isAirlock(key, s) {
				d.left[s.ID] = true
				if disabled {
					c.disabled = append(c.disabled, s.ID)
				}
				return nil
			}
			module := catalog.ModuleName(s.ID)
			if other, taken := modules[module]; taken {
				return d.fail(key, "rename one of them",
					"the servers %q and %q both become the module %q in code", other, s.ID, module)
			}
			modules[module] = s.ID
			c.Servers = append(c.Servers, s)
			return nil
		})
		slices.SortFunc(c.Servers, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
		return err
	}
}

func (d *decoder) serverID(key *yaml.Node, path string) error {
	switch {
	case key.Value == "":
		return d.fail(key, "give the server a name", "a server in %s has an empty name", path)
	case len(key.Value) > 128:
		return d.fail(key, "", "a server's name in %s has %d bytes, more than 128", path, len(key.Value))
	case strings.ContainsFunc(key.Value, unicode.IsControl):
		return d.fail(key, "", "the server name %q contains a control character", key.Value)
	}
	return nil
}

// server reads one entry of mcpServers.
func (d *decoder) server(key, val *yaml.Node, path string) (s Server, disabled bool, err error) {
	s = Server{ID: key.Value, StartTimeout: defaultStartTimeout, CallTimeout: defaultCallTimeout, line: key.Line,
		column: key.Column}
	fields := append(d.serverFields(&s), d.hostServer(&disabled)...)
	if err := d.object(val, path, fields); err != nil {
		return s, false, err
	}
	if disabled {
		return s, true, nil
	}
	if child(val, "callTimeout") == nil {
		s.CallTimeout = 0 // see unite
	}
	if child(val, "startTimeout") == nil && installs(s.Command) {
		s.StartTimeout = installTimeout
	}
	return s, false, d.endpoint(key, path, &s)
}

// launchers are programs that may install a server before they start it.
var launchers = []string{"npx", "npm", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "docker", "podman",
	"nerdctl", "cargo", "go", "deno", "dnx"}

// installs reports whether a command is a launcher.
func installs(command string) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(command), ".exe"), ".cmd")
	return slices.Contains(launchers, name)
}

func (d *decoder) serverFields(s *Server) []field {
	return []field{
		{key: "type", read: d.transport(&s.Transport)},
		{key: "command", val: free{&s.Command}},
		{key: "args", read: d.texts(&s.Args)},
		{key: "env", read: d.secrets(&s.Env)},
		{key: "cwd", read: d.path(&s.Cwd)},
		{key: "url", val: free{&s.URL}},
		{key: "headers", read: d.secrets(&s.Headers)},
		{key: "startTimeout", val: duration{&s.StartTimeout, 100 * time.Millisecond, time.Hour}},
		{key: "callTimeout", val: duration{&s.CallTimeout, 100 * time.Millisecond, 24 * time.Hour}},
		// The same address under the name that Windsurf and Gemini CLI use.
		{key: "serverUrl", val: free{&s.URL}},
		{key: "httpUrl", val: free{&s.URL}},
	}
}

// transports returns the transports by the spellings that hosts use.
func transports() map[string]string {
	return map[string]string{
		"stdio": TransportStdio, "local": TransportStdio,
		"http": TransportHTTP, "streamable-http": TransportHTTP, "streamableHttp": TransportHTTP,
		"streamable_http": TransportHTTP,
		"sse":             TransportSSE,
	}
}

// transport reads type.
func (d *decoder) transport(to *string) func(n *yaml.Node, path string) error {
	spellings := transports()
	return func(n *yaml.Node, path string) error {
		text, err := d.text(n, path)
		if err != nil {
			return err
		}
		known, ok := spellings[text]
		if !ok {
			return d.fail(n, "", "%s must be one of stdio, http, sse, not %q", path, n.Value)
		}
		*to = known
		return nil
	}
}

// endpoint checks that a server has either a command or a URL, but not both.
func (d *decoder) endpoint(key *yaml.Node, path string, s *Server) error {
	switch {
	case s.Command == "" && s.URL == "":
		return d.fail(key, "give it a command to start, or the url of a running server",
			"%s has neither command nor url", path)
	case s.Command != "" && s.URL != "":
		return d.fail(key, "keep one of the two", "%s has both command and url", path)
	case s.Command != "" && (s.Transport == TransportHTTP || s.Transport == TransportSSE):
		return d.fail(key, "remove type, or write stdio", "%s has a command, but its type is %s", path, s.Transport)
	case s.URL != "" && s.Transport == TransportStdio:
		return d.fail(key, "remove type, or write http", "%s has a url, but its type is stdio", path)
	case s.Command != "":
		s.Transport = TransportStdio
		return nil
	}
	if s.Transport == "" {
		s.Transport = TransportHTTP
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return d.fail(key, `write it like "https://mcp.example.com/mcp"`, "%s.url is not an http or https address",
			path)
	}
	return nil
}

// isAirlock reports whether s would start Airlock again, as in a host's file that lists
// Airlock. Otherwise every Airlock would start another one.
func (d *decoder) isAirlock(key *yaml.Node, s Server) bool {
	name := strings.TrimSuffix(filepath.Base(s.Command), ".exe")
	byName := name == "qwed-mcp" || name == "mcp-kernel-server" // the same program under other names
	if !byName && (name != "airlock" || !slices.Contains(s.Args, "mcp")) {
		return false
	}
	d.note(key, fmt.Sprintf("the server %q is Airlock itself and is left out", s.ID),
		"remove it from this file, or keep a separate file for Airlock")
	return true
}

// decided is one entry of servers, with its position for errors.
type decided struct {
	Settings
	key *yaml.Node
}

// settings reads the section servers: the operator's settings for each of mcpServers.
func (d *decoder) settings(to map[string]*decided) func(n *yaml.Node, path string) error {
	return func(n *yaml.Node, path string) error {
		return d.entries(n, path, func(key, val *yaml.Node) error {
			s := &decided{key: key}
			to[key.Value] = s
			return d.object(val, join(path, key.Value), d.settingFields(&s.Settings))
		})
	}
}

func (d *decoder) settingFields(s *Settings) []field {
	return []field{
		{key: "trustAnnotations", val: flag{&s.TrustAnnotations}},
		{key: "allow", read: d.texts(&s.Allow)},
		{key: "deny", read: d.texts(&s.Deny)},
		{key: "secrets", read: d.texts(&s.Secrets)},
		{key: "public", read: d.texts(&s.Public)},
		{key: "personalData", read: d.personal(&s.Personal)},
		{key: "rate", val: rate{&s.Rate}},
		{key: "elicitation", val: flag{&s.Elicitation}},
		{key: "sandbox", read: d.containment(&s.Sandbox)},
		{key: "apps", read: d.apps(&s.Apps)},
		{key: "oauth", read: func(n *yaml.Node, path string) error {
			s.OAuth = &OAuth{}
			return d.object(n, path, d.oauthFields(s.OAuth))
		}},
		{key: "tools", read: func(n *yaml.Node, path string) error {
			s.Tools = map[string]Tool{}
			return d.entries(n, path, func(key, val *yaml.Node) error {
				var t Tool
				err := d.object(val, join(path, key.Value), d.toolFields(&t))
				s.Tools[key.Value] = t
				return err
			})
		}},
	}
}

func (d *decoder) toolFields(t *Tool) []field {
	return []field{
		{key: "risk", val: word{&t.Risk, []string{"read", "write", "destructive"}}},
		{key: "rate", val: rate{&t.Rate}},
	}
}

// unite assigns to every server its settings, and the default call timeout if it has none.
// Settings for an unknown server are an error, because they would have no effect.
func (d *decoder) unite(c *Config, settings map[string]*decided) error {
	ids := make([]string, len(c.Servers))
	for i := range c.Servers {
		ids[i] = c.Servers[i].ID
		if s := settings[ids[i]]; s != nil {
			c.Servers[i].Settings = s.Settings
			if err := d.declared(c.Servers[i], s.key); err != nil {
				return err
			}
			if err := d.oauthFits(c.Servers[i], s.key); err != nil {
				return err
			}
		}
		if c.Servers[i].CallTimeout == 0 {
			c.Servers[i].CallTimeout = c.Limits.Calls.Timeout
		}
	}
	for _, id := range slices.Sorted(maps.Keys(settings)) {
		if slices.Contains(ids, id) || d.left[id] {
			continue
		}
		advice := "add it to mcpServers, or remove it here"
		if best := nearest.Word(id, ids); best != "" {
			advice = fmt.Sprintf("did you mean %q?", best)
		}
		return d.fail(settings[id].key, advice, "servers.%s decides about a server that mcpServers does not have", id)
	}
	return nil
}

// declared checks that all names that are declared secret or public exist: a misspelled name
// would protect nothing.
func (d *decoder) declared(s Server, at *yaml.Node) error {
	flags := flagValues(s.Args)
	var known []string
	for _, values := range []map[string]secret.Value{s.Env, s.Headers} {
		known = append(known, slices.Sorted(maps.Keys(values))...)
	}
	for _, f := range flags {
		known = append(known, f.name)
	}
	for _, c := range d.credentials {
		known = append(known, c.Name)
	}
	for i, names := range [][]string{s.Settings.Secrets, s.Settings.Public} {
		list := []string{"secrets", "public"}[i]
		for _, name := range names {
			switch {
			case !slices.Contains(known, name):
				advice := "name a key of its env or headers, or a flag of its args"
				if best := nearest.Word(name, known); best != "" {
					advice = fmt.Sprintf("did you mean %q?", best)
				}
				return d.fail(at, advice, "servers.%s.%s names %q, which mcpServers.%s does not have", s.ID, list, name,
					s.ID)
			case i == 1 && slices.Contains(s.Settings.Secrets, name):
				return d.fail(at, "keep one of the two", "servers.%s has %q under both secrets and public", s.ID, name)
			}
		}
	}
	return nil
}
