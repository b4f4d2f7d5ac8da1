package hosts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/catalog"
)

// Name is the name of Airlock's entry in a host's file.
const Name = "airlock"

// Command is the command with which a host starts Airlock.
type Command struct {
	Path string   // of the program, absolute
	Args []string // "mcp" and its flags
	Env  map[string]string
	// CallTime is how long hosts must wait for an answer; see config.CallTime.
	CallTime time.Duration
}

// Import is a server that is added to Airlock's configuration.
type Import struct {
	Entry Entry    // under its name in Airlock's configuration
	From  []string // the paths of the files that name it
	Was   string   // its name there, if Airlock's configuration has another server of that name
	// Unsigned reports whether the entry has no credentials. If the host signs in to such a server
	// by itself, the server works only in the host.
	Unsigned bool
}

// Change is the change of one host's file.
type Change struct {
	File   File
	Remove []string // names of servers that move to Airlock
	Stay   []Entry  // servers that stay with the host, each with the reason
}

// Plan has the changes that `airlock init` makes. Creating a plan changes nothing.
type Plan struct {
	Config  string // the path of Airlock's configuration
	Imports []Import
	Changes []Change
	Skipped []File // files that cannot be used, with Err, or that are registered already
	// Contained reports whether the plan gives servers sandboxes.
	Contained bool

	command   Command
	variables []string // that servers of the configuration need
	config    []byte   // the new content of Config
	before    []byte   // the old content; nil if the file did not exist
	// uncontained is config before Contain; nil if it was not called.
	uncontained []byte
}

// NewPlan plans to move the servers of the files to the configuration at path config, whose content
// is before (nil if the file does not exist), and to register command in their place.
func NewPlan(files []File, config string, before []byte, command Command) (*Plan, error) {
	p := &Plan{Config: config, before: before, command: command}
	taken, err := p.existing()
	if err != nil {
		return nil, err
	}
	// The servers of hosts that pass variables on determine what Airlock needs in the others.
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int {
		return cmp.Compare(min(1, len(b.Host.reference("X"))), min(1, len(a.Host.reference("X"))))
	})
	for _, file := range files {
		_, lacks := variables(taken)
		if file.Host.reference("X") == "" && len(lacks) > 0 && file.Err == nil {
			file.Err = fmt.Errorf("%s does not pass %s on, so Airlock would not start there; "+
				"write these values to %s as keyring:NAME or age:NAME and run airlock init again",
				file.Host.Title, strings.Join(lacks, ", "), config)
		}
		if file.Err != nil || file.Registered && len(file.movable()) == 0 {
			p.Skipped = append(p.Skipped, file)
			continue
		}
		change := Change{File: file}
		for _, entry := range file.Entries {
			if entry.Stays != "" {
				change.Stay = append(change.Stay, entry)
				continue
			}
			change.Remove = append(change.Remove, entry.Name)
			p.take(entry, file, taken)
		}
		p.Changes = append(p.Changes, change)
	}
	slices.SortFunc(p.Imports, func(a, b Import) int { return cmp.Compare(a.Entry.Name, b.Entry.Name) })
	p.variables, _ = variables(taken)
	return p, p.write()
}

// inherited are the variables that hosts pass to every server that they start, as the stdio clients
// of the official SDKs do.
var inherited = []string{"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// variables returns the variables of servers that hosts must pass on, and those without which Airlock does not start.
func variables(servers map[string]*Entry) (all, required []string) {
	for _, entry := range servers {
		names, without := entry.variables()
		all, required = append(all, names...), append(required, without...)
	}
	return withoutInherited(all), withoutInherited(required)
}

// withoutInherited returns each name once, in order, without those that hosts pass on.
func withoutInherited(names []string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(inherited, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// movable returns the entries that Airlock can import.
func (f File) movable() []Entry {
	return slices.DeleteFunc(slices.Clone(f.Entries), func(e Entry) bool { return e.Stays != "" })
}

// existing returns the modules of servers that the configuration has, by name.
func (p *Plan) existing() (map[string]*Entry, error) {
	servers, err := yamlFormat.servers(p.before, "mcpServers")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", p.Config, err)
	}
	taken := map[string]*Entry{}
	for name, f := range servers {
		entry := Entry{
			Name: name, Type: f.text("type"), Command: f.text("command"), Args: f.texts("args"), Cwd: f.text("cwd"),
			URL: f.text("url"), Env: f.mapping("env"), Headers: f.mapping("headers"),
		}
		taken[catalog.ModuleName(name)] = &entry
	}
	return taken, nil
}

// take plans to import an entry. An entry that was imported before, possibly under another name, is
// not imported twice. If another server has the same name, the entry gets a new name.
func (p *Plan) take(entry Entry, file File, taken map[string]*Entry) {
	for _, known := range taken {
		if known.equal(entry) && catalog.ModuleName(
			strings.TrimSuffix(known.Name, "-"+file.Host.ID)) == catalog.ModuleName(entry.Name) {
			for i := range p.Imports {
				if p.Imports[i].Entry.Name == known.Name {
					p.Imports[i].From = append(p.Imports[i].From, file.Path)
				}
			}
			return
		}
	}
	was := entry.Name
	for n := 1; taken[catalog.ModuleName(entry.Name)] != nil; n++ {
		entry.Name = was + "-" + file.Host.ID
		if n > 1 {
			entry.Name = fmt.Sprintf("%s-%s-%d", was, file.Host.ID, n)
		}
	}
	taken[catalog.ModuleName(entry.Name)] = &entry
	added := Import{Entry: entry, From: []string{file.Path}, Unsigned: entry.isUnsigned()}
	if entry.Name != was {
		added.Was = was
	}
	p.Imports = append(p.Imports, added)
}

// write sets config to the new content of the configuration.
func (p *Plan) write() error {
	add := map[string]string{}
	for _, imported := range p.Imports {
		text, err := encodeYAML("", imported.Entry.Name, imported.Entry.settings())
		if err != nil {
			return fmt.Errorf("writing the server %q: %w", imported.Entry.Name, err)
		}
		add[imported.Entry.Name] = text
	}
	content := p.before
	if content == nil {
		content = []byte("# yaml-language-server: $schema=" + config.SchemaAddress + "\n" +
			"# Airlock's configuration. docs/configuration.md explains every key. This file may\n" +
			"# hold credentials: keep it private, or write env:NAME, keyring:NAME or age:NAME.\n")
	}
	var err error
	p.config = content
	if len(add) > 0 || p.before == nil {
		p.config, err = yamlFormat.checkedEdit(content, "mcpServers", nil, add)
	}
	if err != nil {
		return fmt.Errorf("adding servers to %s: %w", p.Config, err)
	}
	return nil
}

// TrustClaims adds to the configuration that the claims of these imported servers about their own tools are trusted.
// It is called before Apply.
func (p *Plan) TrustClaims(names []string) error {
	for _, name := range names {
		if err := p.set(name, "trustAnnotations", true); err != nil {
			return err
		}
	}
	return nil
}

// Contain sets servers.NAME.sandbox to the values of boxes, by server. It is called before TrustClaims; a second call
// replaces the first one.
func (p *Plan) Contain(boxes map[string]any) error {
	if p.uncontained == nil {
		p.uncontained = p.config
	}
	p.config, p.Contained = p.uncontained, len(boxes) > 0
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		if err := p.set(name, "sandbox", boxes[name]); err != nil {
			return err
		}
	}
	return nil
}

// set sets a key of the settings of a server. Its other settings stay.
func (p *Plan) set(name, key string, value any) error {
	all, err := yamlFormat.decode(p.config)
	if err != nil {
		return err
	}
	settings := map[string]any{}
	servers, _ := all["servers"].(map[string]any)
	if former, exists := servers[name].(map[string]any); exists {
		settings = maps.Clone(former)
	}
	settings[key] = value
	text, err := yamlMember(name, settings)
	if err != nil {
		return fmt.Errorf("writing the settings of the server %q: %w", name, err)
	}
	var former []string
	if _, exists := servers[name]; exists {
		former = []string{name}
	}
	edited, err := yamlFormat.checkedEdit(p.config, "servers", former, map[string]string{name: text})
	if err != nil {
		return fmt.Errorf("adding settings to %s: %w", p.Config, err)
	}
	p.config = edited
	return nil
}

// settings returns the entry as Airlock's configuration writes it.
func (e Entry) settings() written {
	return written{Type: e.Type, Command: e.Command, Args: e.Args, Cwd: e.Cwd, Env: e.Env, URL: e.URL,
		Headers: e.Headers, StartTimeout: e.StartTimeout, CallTimeout: e.CallTimeout}
}

// reference returns the host's syntax for a reference to a variable, or "" if it has none.
func (h Host) reference(variable string) string {
	switch h.ID {
	case "claude-code":
		return "${" + variable + ":-}"
	case "codex":
		return variable // in a list of names
	case "copilot-cli":
		return "${" + variable + "}"
	case "cursor", "vscode", "windsurf":
		return "${env:" + variable + "}"
	case "gemini":
		return "$" + variable
	case "opencode":
		return "{env:" + variable + "}"
	}
	return ""
}

// registration returns the entry of Airlock in the host's format. Hosts start servers with few
// variables, so the entry names those that Airlock needs.
func (h Host) registration(c Command, variables []string) written {
	out := written{Command: c.Path, Args: c.Args, Env: maps.Clone(c.Env)}
	for _, name := range variables {
		switch reference := h.reference(name); {
		case h.ID == "codex":
			out.EnvVars = append(out.EnvVars, name)
		case reference != "":
			if out.Env == nil {
				out.Env = map[string]string{}
			}
			out.Env[name] = reference
		}
	}
	toolTimeout := int(c.CallTime / time.Second)
	switch h.ID {
	case "claude-code", "copilot-jetbrains", "vscode":
		out.Type = "stdio"
	case "cline":
		out.Timeout = toolTimeout
	case "codex":
		out.ToolTimeout = toolTimeout
	case "copilot-cli":
		out.Tools = []string{"*"}
	case "gemini", "opencode", "zed":
		out.Timeout = toolTimeout * 1000
	case "goose":
		out = written{Name: Name, Type: "stdio", Enabled: true, Cmd: c.Path, Args: c.Args, Envs: c.Env,
			Timeout: toolTimeout}
	}
	return out
}

// Snippet returns a complete file of the host with Airlock as the only server, from which a user
// copies the entry by hand.
func (h Host) Snippet(c Command) (string, error) {
	entry, err := h.format.encode(h.key, Name, h.registration(c, nil))
	if err != nil {
		return "", fmt.Errorf("writing Airlock's entry for %s: %w", h.Title, err)
	}
	out, err := h.format.checkedEdit(nil, h.key, nil, map[string]string{Name: entry})
	return string(out), err
}
